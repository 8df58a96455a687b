"""The host's resolvers, which a server that may use the network asks for names."""

import ipaddress
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

RESOLV_CONF = Path("/etc/resolv.conf")
MAX_BYTES = 64 << 10  # glibc reads three lines of it
MOST = 3  # MAXNS of resolv.conf(5)
_DEFAULT = ipaddress.ip_address("127.0.0.1")  # where glibc asks when none is named
# Where systemd-resolved.service(8) answers; the only loopback addresses that are let through.
_STUBS = frozenset(map(ipaddress.ip_address, ("127.0.0.53", "127.0.0.54")))
# Of the clouds' resolvers these are their metadata services as well.
_METADATA = frozenset(
    map(ipaddress.ip_address, ("168.63.129.16", "100.100.100.200", "fd00:ec2::254"))
)


@dataclass(frozen=True, slots=True)
class Resolvers:
    """Those of one host.

    Attributes:
        used: let through.
        kept_out: not, each with the reason.
    """

    used: tuple[str, ...] = ()
    kept_out: tuple[tuple[str, str], ...] = ()

    @property
    def sentence(self) -> str:
        """For people: who is asked for names, and who is not and why."""
        asked = f"resolvers {', '.join(self.used)}" if self.used else "no resolver"
        return "; ".join([asked, *(f"not resolver {one}: {why}" for one, why in self.kept_out)])


def parse(text: str) -> Resolvers:
    """The resolvers of a resolv.conf(5); lines that glibc would not understand count nothing."""
    named = []
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == "nameserver":
            with suppress(ValueError):
                named.append(ipaddress.ip_address(words[1]))
    reasons = {str(address): _reason(address) for address in named[:MOST] or [_DEFAULT]}
    return Resolvers(
        tuple(address for address, why in reasons.items() if not why),
        tuple((address, why) for address, why in reasons.items() if why),
    )


def read(path: Path = RESOLV_CONF) -> Resolvers:
    """Those of this host; a file that cannot be read names none."""
    try:
        with path.open("rb") as file:
            return parse(file.read(MAX_BYTES).decode("utf-8", "replace"))
    except OSError:
        return parse("")


def _reason(address: Address) -> str:
    """Why a resolver cannot be let through; empty when it can."""
    if (address.is_loopback or address.is_unspecified) and address not in _STUBS:
        return "every service of this host answers there, too"
    # With a scope, no packet filter knows it.
    if address.is_link_local or "%" in str(address) or address in _METADATA:
        return "metadata services answer at such addresses"
    return ""
