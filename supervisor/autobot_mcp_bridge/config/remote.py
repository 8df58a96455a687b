"""What must hold of a server that is a remote one: its `url`, `headers`, and what goes with them."""

import re
from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from autobot_mcp_bridge.config.problem import Loc
from autobot_mcp_bridge.model import header
from autobot_mcp_bridge.model.addresses import is_public, listed
from autobot_mcp_bridge.model.destinations import HTTPS, Destination, is_covered, parse_entry
from autobot_mcp_bridge.model.server import ServerSpec

Finding = tuple[Loc, object, str]
# What is about a program, and there is none of the server's own.
_OF_PROGRAMS = ("env", "credentials", "paths", "root", "groups", "profile", "cwd", "run_as")
_URL = re.compile(r"[\x21-\x7e]{1,2048}")
FORM = "allowed is https://HOST[:PORT]/PATH in ASCII, without a user and without #"


def remote_relations(spec: ServerSpec) -> Iterator[Finding]:
    """Each thing that cannot work: place, value, clause."""
    if spec.url is None:
        if spec.headers:
            yield ("headers",), None, "they are for a server with url; leave them out"
        return
    if spec.command:
        yield ("url",), spec.url, "allowed is either url or command"
    for key in _OF_PROGRAMS:
        if key in spec.model_fields_set and getattr(spec, key):
            clause = "it is about a program, and a server with url has none; leave it out"
            yield (key,), getattr(spec, key), clause
    yield from _headers(spec)
    parts = _parts(spec.url)
    if parts is None:
        yield ("url",), spec.url, FORM
        return
    yield from _network(spec, parts)


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # one that is none raises
    except ValueError:
        return None
    fits = _URL.fullmatch(url) and parts.hostname and parts.scheme in ("https", "http")
    return parts if fits and "@" not in parts.netloc and "#" not in url else None


def _network(spec: ServerSpec, parts: SplitResult) -> Iterator[Finding]:
    network, host = spec.network, parts.hostname or ""
    if "mode" in network.model_fields_set and network.mode in ("none", "loopback"):
        clause = f"{network.mode} keeps it from its url; allowed is internet, list, names"
        yield ("network", "mode"), network.mode, clause
    if parts.scheme == "http" and network.mode != "list":
        clause = (
            "http is for private addresses only, which network.mode list has to name; "
            "allowed is https"
        )
        yield ("url",), spec.url, clause
    try:
        address = ip_address(host)
        if network.mode == "list":
            networks = [listed(text) for text in network.allow]
            fits = any(address in one for one in networks if one.version == address.version)
        else:
            fits = is_public(address) and network.mode != "names"
        clause = "its address is not let through; network.mode list with network.allow can name it"
    except ValueError:  # a name; or an entry that is none, which is told where it stands
        if network.mode != "names":
            return
        try:
            entries = [parse_entry(text) for text in network.allow]
        except ValueError:
            return
        wanted = Destination(host, parts.port or HTTPS)
        fits = is_covered(wanted, entries)
        clause = f"network.allow has to list {wanted}"
    if not fits:
        yield ("url",), spec.url, clause


def _headers(spec: ServerSpec) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name in spec.headers:
        if header.is_taken(name):
            yield ("headers", name), None, "the transport has it already; leave it out"
        other = seen.setdefault(header.variable(name), name)
        if other != name:
            yield ("headers", name), None, f"it is the same as {other}"
