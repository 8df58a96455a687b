"""What each network mode lets through, in the terms of systemd's units. Pure.

IPAddressAllow= wins over IPAddressDeny=any whatever the prefixes (systemd.resource-control(5)), so
that what is not to be reached has to be left out of what is allowed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from autobot_mcp_bridge.config.problem import Loc
from autobot_mcp_bridge.model import addresses
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.packages import live
from autobot_mcp_bridge.units.sandbox import names
from autobot_mcp_bridge.units.sandbox.profiles import Profile
from autobot_mcp_bridge.units.sandbox.resolvers import Resolvers

# Both versions, whichever the list has: a program that cannot make a socket of one often gives up.
_FAMILIES = ("AF_INET", "AF_INET6")


@dataclass(frozen=True, slots=True)
class Reach:
    """The directives of one server that may make sockets.

    Attributes:
        private: a network of its own, with its own loopback and nothing else (PrivateNetwork=).
        families: of the sockets that it may make (RestrictAddressFamilies=).
        allowed: addresses and networks, each of them the words of one IPAddressAllow=.
    """

    private: bool
    families: tuple[str, ...]
    allowed: tuple[tuple[str, ...], ...]


def mode_of(spec: ServerSpec) -> str:
    """The mode in force: npx, uvx and a remote server need a network, internet by default."""
    needs_it = live.is_live(spec) or spec.url is not None
    if needs_it and "mode" not in spec.network.model_fields_set:
        return "internet"
    return spec.network.mode


def reach(spec: ServerSpec, profile: Profile, resolvers: Resolvers) -> Reach | None:
    """What the server's unit lets through; None: no socket at all, as the template has it."""
    local = ("AF_UNIX",) if profile.local else ()
    families = (*_FAMILIES, *(("AF_NETLINK",) if profile.interfaces else ()), *local)
    match mode_of(spec):
        case "loopback" | "names":  # with names its loopback leads to the egress proxy
            return Reach(True, families, (("localhost",),))
        case "list":
            networks = tuple(str(addresses.listed(text)) for text in spec.network.allow)
            return Reach(False, families, _lines(networks, resolvers.used))
        case "internet":
            return Reach(False, families, _lines(*addresses.public(), resolvers.used))
        case _:
            return Reach(True, local, ()) if local else None


def _lines(*allowed: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    # An empty IPAddressAllow= would take back those before it.
    return tuple(filter(None, allowed))


def refusals(spec: ServerSpec) -> Iterator[tuple[Loc, str]]:
    """What of the network that the definition asks for no unit gives: place and clause."""
    mode = mode_of(spec)
    if live.is_live(spec) and mode in ("none", "loopback"):
        clause = f"{mode} keeps {spec.profile} from its registry; allowed is internet, list, names"
        yield ("network", "mode"), clause


def sentence(spec: ServerSpec, resolvers: Resolvers) -> str | None:
    """What the mode lets through, for people; None where there is no socket at all."""
    match mode_of(spec):
        case "loopback":
            return "network loopback: a loopback interface of its own, and nothing beyond it"
        case "names":
            return names.sentence(spec)
        case "list":
            return f"network list: {', '.join(spec.network.allow)}; {resolvers.sentence}"
        case "internet":
            what = "public addresses, no private, link-local, metadata or loopback ones"
            return f"network internet: {what}; {resolvers.sentence}"
        case _:
            return None
