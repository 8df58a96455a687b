"""Which addresses are public: what a listed name may lead to. Pure.

Written out from the IANA registries of special-purpose addresses (RFC 6890), since what
`ipaddress` calls global has changed between versions of Python.
"""

import ipaddress

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_NOT_PUBLIC_4 = tuple(
    map(
        ipaddress.IPv4Network,
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
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
# Everything else, such as ::1, fc00::/7, fe80::/10 and ff00::/8, is not unicast of the Internet.
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments, with Teredo, which holds IPv4 addresses
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4, which holds IPv4 addresses
            "3fff::/20",  # documentation
        ),
    )
)
# RFC 6052 section 2.1; the last 32 bits are an IPv4 address.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: IPAddress) -> bool:
    """Whether it is an ordinary address of the Internet; one that holds another is judged by that."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    if address.scope_id is not None:
        return False
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address in _NAT64:
        return is_public(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return address in _GLOBAL_6 and not any(address in network for network in _NOT_PUBLIC_6)
