"""Addresses and networks of IP: what a list may name, and which networks are the internet."""

from collections.abc import Iterable, Iterator
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TypeVar

Network = IPv4Network | IPv6Network
_N = TypeVar("_N", IPv4Network, IPv6Network)

# Where this host itself answers, and its link: an entry of a list that holds them besides others
# would let them through by accident.
_OWN_4 = (IPv4Network("127.0.0.0/8"), IPv4Network("169.254.0.0/16"))
_OWN_6 = (IPv6Network("::1/128"), IPv6Network("fe80::/10"))
# What is not the internet: IANA's registries of special-purpose addresses (RFC 6890), multicast
# and what is reserved. The metadata services of clouds answer in there; Azure's alone has a public
# address, which is listed, too.
_SPECIAL_4 = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32"),
    *("169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"),
    *("192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3"),
)
# Within 2000::/3, which is all that IANA has given out. Teredo and 6to4 are in here because they
# carry IPv4 addresses of any kind, as does NAT64 (64:ff9b::/96), which is outside.
_UNICAST_6 = "2000::/3"
_SPECIAL_6 = ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")


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
    """The networks of the internet: those of IPv4, and those of IPv6."""
    four = _without(IPv4Network("0.0.0.0/0"), map(IPv4Network, _SPECIAL_4))
    six = _without(IPv6Network(_UNICAST_6), map(IPv6Network, _SPECIAL_6))
    return tuple(map(str, sorted(four))), tuple(map(str, sorted(six)))


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
