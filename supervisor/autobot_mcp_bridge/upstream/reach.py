"""Which addresses an upstream may have: each name is resolved here, and only what passed is used.

aiohttp connects to the very addresses that a resolver gives it, with the name as Host and in TLS,
and asks again for each new connection: a name that changes its mind meanwhile gains nothing.
"""

import asyncio
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

from aiohttp.abc import AbstractResolver, ResolveResult

from autobot_mcp_bridge.model.addresses import NAT64, Address, Network, is_public

RESOLVE_WITHIN = 10.0  # seconds for one lookup, as for a connection
# Names that mean this host, or a service of its cloud, whatever a resolver says.
_OWN_NAMES = ("localhost", "internal")


class RefusedError(OSError):
    """The address or the name must not be connected to; the text is a clause."""

    def __str__(self) -> str:
        return str(self.strerror or super().__str__())


@dataclass(frozen=True, slots=True)
class Reach:
    """A rule.

    Attributes:
        networks: the only ones that may be connected to; None: the internet.
        anywhere: every address, since a person has typed the URL.
        plain: the URL is http: no public address, for all between could read headers and calls.
    """

    networks: tuple[Network, ...] | None = None
    anywhere: bool = False
    plain: bool = False

    def check(self, host: str, found: Iterable[str]) -> None:
        """All addresses of a name: one that is refused refuses the name.

        Raises:
            RefusedError: the name or one of them; it says which.
        """
        last = host.rstrip(".").rpartition(".")[2].lower()
        if last in _OWN_NAMES and self.networks is None and not self.anywhere:
            raise _refused(f"{host} is a name of this host or its cloud")
        for text in found:
            if clause := self._clause(ip_address(text)):
                raise _refused(f"{host} leads to {text}, {clause}")

    def _clause(self, address: Address) -> str:
        """Why it must not be connected to; empty: it may."""
        own = (address.version == 6 and address.ipv4_mapped) or address
        if self.plain and is_public(own):
            return "a public address, to which nothing goes without TLS; allowed is https"
        if self.anywhere:
            return ""
        if self.networks is not None:
            if any(own in network for network in self.networks if network.version == own.version):
                return ""
            return "which network.allow does not list"
        if own is not address or (address.version == 6 and address in NAT64):
            return "an address of IPv4 within one of IPv6; network.allow would have to list it"
        return "" if is_public(address) else "which is not public; network.allow may list it"


class Resolver(AbstractResolver):
    """getaddrinfo(3), checked; a new lookup for each new connection."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses of the name, in the order in which they should be tried.

        Raises:
            OSError: there is none in time.
            RefusedError: one of them is refused.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(RESOLVE_WITHIN):
                found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        except TimeoutError:
            raise OSError(0, f"no answer within {RESOLVE_WITHIN:.0f} s") from None
        except UnicodeError:
            raise OSError(0, "not a name") from None
        addresses = [str(to[0]) for _, _, _, _, to in found]
        self._reach.check(host, addresses)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=kind,
                proto=proto,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address, (kind, _, proto, _, _) in zip(addresses, found, strict=True)
        ]

    async def close(self) -> None:
        """Nothing is kept."""


def _refused(text: str) -> RefusedError:
    return RefusedError(0, text)
