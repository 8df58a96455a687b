"""What a server with network mode names may reach: host names with ports, and how they match."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

HTTPS = 443
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"({_LABEL}\.)+{_LABEL}")
# inet_aton(3) would take such a last label for a part of an address.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_MOST_NAME = 253  # RFC 1035 section 2.3.4, as text
_ANY = "*."
ALLOWED = (
    "allowed is HOST or HOST:PORT, such as api.example.com or *.example.com:8443: a full host name "
    "(xn-- for others than ASCII), no address, and * only as its first label"
)


@dataclass(frozen=True, slots=True, order=True)
class Destination:
    """A host's name in lower case and a TCP port; `*.` in front means every name below it."""

    host: str
    port: int = HTTPS

    def covers(self, other: "Destination") -> bool:
        """Whether the other, which has no `*`, is let through by this entry."""
        if self.port != other.port:
            return False
        if self.host.startswith(_ANY):
            return other.host.endswith(self.host[1:])
        return self.host == other.host

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_entry(text: str) -> Destination:
    """One entry of network.allow.

    Raises:
        ValueError: it is none; the message is a clause that says what is allowed.
    """
    host, colon, port = text.partition(":")
    bare = host.removeprefix(_ANY)
    number = _port(port) if colon else HTTPS
    if number is None or not is_host_name(bare.lower()):
        raise ValueError(ALLOWED)
    return Destination(host.lower(), number)


def parse_authority(text: str) -> Destination | None:
    """The target of a CONNECT request (RFC 9110 section 9.3.6), which names its port; else None."""
    host, _, port = text.partition(":")
    number = _port(port)
    if number is None or not is_host_name(host.lower()):
        return None
    return Destination(host.lower(), number)


def is_host_name(text: str) -> bool:
    """Whether the text, in lower case, is a full host name: two labels at least, no address."""
    if len(text) > _MOST_NAME or not _NAME.fullmatch(text):
        return False
    return not _NUMBER.fullmatch(text.rpartition(".")[2])


def is_covered(wanted: Destination, entries: Iterable[Destination]) -> bool:
    return any(entry.covers(wanted) for entry in entries)


def _port(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) <= 5):
        return None
    return int(text) if 0 < int(text) < 65536 else None
