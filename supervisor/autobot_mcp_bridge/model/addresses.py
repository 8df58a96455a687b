"""Addresses and networks of IP: what a list may name, and which are the internet. Pure.

Written out from IANA's registries, since what `ipaddress` calls global has changed between versions
of Python.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TypeVar

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_N = TypeVar("_N", IPv4Network, IPv6Network)

# Where this host itself answers, and its link: an entry of a list that holds them besides others
# would let them through by accident.
_OWN_4 = (IPv4Network("127.0.0.0/8"), IPv4Network("169.254.0.0/16"))
_OWN_6 = (IPv6Network("::1/128"), IPv6Network("fe80::/10"))
# What is not the internet: IANA's registries of special-purpose addresses (RFC 6890), multicast
# and what is reserved. The metadata services of clouds answer in there; Azure's alone has a public
# address, which is listed, too.
_SPECIAL_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",
            "100.64.0.0/10",  # behind a carrier's NAT; metadata of Alibaba Cloud
            "127.0.0.0/8",
            "168.63.129.16/32",  # Azure's host, reached from its guests only
            "169.254.0.0/16",  # link-local; metadata of most clouds
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments; metadata of Oracle Cloud
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/3",  # multicast, reserved, broadcast
        ),
    )
)
# All that IANA has given out of IPv6; ::1, fc00::/7, fe80::/10 and ff00::/8 are outside.
_UNICAST_6 = IPv6Network("2000::/3")
_SPECIAL_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, with Teredo, which holds IPv4 addresses
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4, which holds IPv4 addresses
            "3fff::/20",  # documentation
        ),
    )
)
# RFC 6052 section 2.1; the last 32 bits are an IPv4 address.
NAT64 = IPv6Network("64:ff9b::/96")


def listed(text: str) -> Network:
    """An entry of a list: an address, or a network without bits behind its prefix.

    Raises:
        ValueError: it is none, or no packet filter could tell it; the message is a clause.
    """
    try:
        network = ip_network(text)
    except ValueError:
        clause = "allowed is an address or a network, such as 192.0.2.7, 10.0.0.0/8, 2001:db8::/32"
        raise ValueError(clause) from None
    if isinstance(network, IPv4Network):
        _refuse_own(network, _OWN_4)
        return network
    if network.network_address.scope_id is not None:
        raise ValueError("an address with a scope cannot be told by a unit")
    if network.network_address.ipv4_mapped is not None:
        raise ValueError("allowed is an IPv4 address as such, not mapped into IPv6")
    _refuse_own(network, _OWN_6)
    return network


def _refuse_own(network: _N, own: Iterable[_N]) -> None:
    for one in own:
        if one != network and one.subnet_of(network):
            clause = f"it holds {one}, which is this host's own; allowed are narrower networks"
            raise ValueError(clause)


@cache
def public() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The networks of the internet: those of IPv4, and those of IPv6.

    NAT64 is not among them: a network of it carries IPv4 addresses of any kind.
    """
    four = _without(IPv4Network("0.0.0.0/0"), _SPECIAL_4)
    six = _without(_UNICAST_6, _SPECIAL_6)
    return tuple(map(str, sorted(four))), tuple(map(str, sorted(six)))


def is_public(address: Address) -> bool:
    """Whether it is an address of the internet; one that holds another is judged by that."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_4)
    if address.scope_id is not None:
        return False
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address in NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    return address in _UNICAST_6 and not any(address in network for network in _SPECIAL_6)


def _without(whole: _N, special: Iterable[_N]) -> list[_N]:
    left = [whole]
    for taken in special:
        left = [part for network in left for part in _less(network, taken)]
    return left


def _less(network: _N, taken: _N) -> Iterator[_N]:
    if taken.subnet_of(network):
        yield from network.address_exclude(taken)
    else:
        yield network
