"""Whose request it is, behind proxies that the host trusts: X-Forwarded-For, read from its end."""

import ipaddress
from collections.abc import Iterable, Iterator

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address

HEADER = "X-Forwarded-For"
# Hops that are looked at: each is a proxy of the host's own, so there are few.
MOST = 16


class Forwarded:
    """Tells clients' addresses.

    Each proxy adds at the end whom it was connected by. So the list is believed from its end on, as
    far as trusted proxies have written it: the client is the last address that is none of theirs.
    What stands before that the client may have made up. X-Forwarded-Host and -Proto are not read:
    http.public_url says what clients write.
    """

    def __init__(self, trusted: Iterable[str]) -> None:
        self._trusted = tuple(ipaddress.ip_network(text) for text in trusted)

    def client(self, peer: str | None, values: Iterable[str]) -> str:
        """The client's address; "-" where nobody knows it.

        Args:
            peer: of the connection.
            values: of each X-Forwarded-For header, in their order.
        """
        address = _address(peer or "")
        if address is None:
            return peer or "-"
        if not self._trusted:
            return str(address)
        for text, _ in zip(_from_the_end(values), range(MOST), strict=False):
            if not self._is_trusted(address):
                break
            before = _address(text)
            if before is None:
                break  # no address: the proxy that we know is all that is known
            address = before
        return str(address)

    def _is_trusted(self, address: Ip) -> bool:
        return any(address in network for network in self._trusted)


def _from_the_end(values: Iterable[str]) -> Iterator[str]:
    for value in reversed([*values]):
        yield from reversed(value.split(","))


def _address(text: str) -> Ip | None:
    """An address as proxies write it: some with a port, of IPv6 in brackets."""
    text = text.strip()
    if text.startswith("["):
        text, closed, _ = text[1:].partition("]")
        if not closed:
            return None
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if found.version == 6 else None
    return mapped or found
