"""What must hold between settings, and what this host must have for them."""

import ipaddress
import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path, PurePosixPath

from autobot_mcp_bridge.config.callers import (
    BAD_TEMPLATE,
    http_relations,
    oauth_relations,
    tls_relations,
)
from autobot_mcp_bridge.config.places import RESERVED_TENANTS
from autobot_mcp_bridge.config.problem import Loc
from autobot_mcp_bridge.config.remote import remote_relations
from autobot_mcp_bridge.model import addresses
from autobot_mcp_bridge.model.destinations import parse_entry
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.scopes import is_template
from autobot_mcp_bridge.model.server import HOOKS, Limits, Network, ServerSpec

Finding = tuple[Loc, object, str]

# A proxy that is told to stop waits this long for its slowest server at most.
MAX_STOP_SECONDS = 600.0
MAX_SECONDS = 366 * 86400.0
MIN_MEMORY = 4 << 20  # no interpreter starts in less
MAX_MEMORY = 1 << 50
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?")
_REDIS = re.compile(
    r"rediss?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?(/\d{1,5})?|unix:///[^@?#\s]+"
)
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?")


def server_relations(spec: ServerSpec) -> Iterator[Finding]:
    """Each thing about the server that cannot work on any host: place, value, clause."""
    if spec.tenant in RESERVED_TENANTS:
        yield ("tenant",), spec.tenant, "the name is reserved for a directory of the state"
    timeouts = spec.timeouts
    for key in ("start", "call", "idle", "stop"):
        if getattr(timeouts, key) > MAX_SECONDS:
            yield ("timeouts", key), getattr(timeouts, key), "allowed is at most 366 days"
    if timeouts.stop > MAX_STOP_SECONDS:
        yield (
            ("timeouts", "stop"),
            timeouts.stop,
            f"allowed is at most {MAX_STOP_SECONDS:g} seconds",
        )
    if spec.breaker.window > MAX_SECONDS:
        yield ("breaker", "window"), spec.breaker.window, "allowed is at most 366 days"
    if spec.caps.queue < spec.caps.body:
        clause = (
            f"allowed is at least caps.body ({spec.caps.body} bytes), or no such body would fit"
        )
        yield ("caps", "queue"), spec.caps.queue, clause
    yield from _limits(spec.limits)
    yield from _network(spec.network)
    if spec.warm and spec.sessions == "isolated":
        yield (
            ("warm",),
            True,
            "a server with isolated sessions has no process before a client comes",
        )
    for index, scope in enumerate(spec.scopes or ()):
        if not is_template(scope):
            yield ("scopes", index), scope, BAD_TEMPLATE
    yield from _command(spec)
    yield from remote_relations(spec)


def lacking(spec: ServerSpec) -> Iterator[Finding]:
    """Each thing that this host does not have for the server: its own trouble. Looks at the disk."""
    if spec.cwd is not None and spec.root is None and not Path(spec.cwd).is_dir():
        yield ("cwd",), spec.cwd, "allowed is a directory that exists"
    installed = entry_points(group=HOOKS).names if spec.hooks else ()
    for index, hook in enumerate(spec.hooks):
        if hook.name not in installed:
            known = ", ".join(sorted(installed)) or "none"
            clause = f"no such hook is installed; there are {known}"
            yield ("hooks", index, "name"), hook.name, clause


def _limits(limits: Limits) -> Iterator[Finding]:
    # systemd ignores a value that it cannot use, and the server would have no limit at all.
    if limits.memory < MIN_MEMORY:
        yield ("limits", "memory"), limits.memory, f"allowed is at least {MIN_MEMORY >> 20}M"
    if limits.memory > MAX_MEMORY:
        yield ("limits", "memory"), limits.memory, f"allowed is at most {MAX_MEMORY >> 30}G"
    high = limits.memory_high
    if high is not None and not MIN_MEMORY <= high < limits.memory:
        clause = f"allowed is at least {MIN_MEMORY >> 20}M, and less than limits.memory"
        yield ("limits", "memory_high"), high, clause
    if limits.cpu < 1:
        yield ("limits", "cpu"), f"{limits.cpu}%", "allowed is at least 1%"


def _network(network: Network) -> Iterator[Finding]:
    takes_list = network.mode in ("list", "names")
    if takes_list and not network.allow:
        clause = f"network.mode {network.mode} needs at least one entry"
        yield ("network", "allow"), list(network.allow), clause
    elif network.allow and not takes_list:
        clause = f"network.mode {network.mode} takes none; allowed is mode list or names"
        yield ("network", "allow"), list(network.allow), clause
    if takes_list:
        parse = addresses.listed if network.mode == "list" else parse_entry
        for index, text in enumerate(network.allow):
            try:
                parse(text)
            except ValueError as error:
                yield ("network", "allow", index), text, str(error)


def _command(spec: ServerSpec) -> Iterator[Finding]:
    # A relative path would mean another program in every working directory; a bare name is
    # looked up when the command is resolved.
    if not spec.command:
        return
    if spec.root is not None and PurePosixPath(spec.command[0]).name in {"npx", "uvx"}:
        clause = (
            "it installs on the host, which root hides; allowed is a program that is in the root"
        )
        yield ("command", 0), spec.command[0], clause
    if "/" in spec.command[0] and not spec.command[0].startswith("/"):
        clause = "the program is a relative path; allowed is an absolute path or a bare name"
        yield ("command", 0), spec.command[0], clause


def host_relations(host: HostSettings) -> Iterator[Finding]:
    """Each host setting that cannot work or must not: place, value, clause."""
    for key, value in (("listen", host.listen.address), ("operator", host.operator.address)):
        address = _address(value)
        if address is None:
            yield (key, "address"), value, "allowed is an IP address or localhost"
        elif not address.is_loopback and not host.listen.beyond_loopback:
            if key == "operator":
                clause = "an address beyond loopback needs listen.beyond_loopback = true"
                yield (key, "address"), value, clause
            elif host.tls.certificate is None:
                clause = "an address beyond loopback needs tls, or listen.beyond_loopback = true"
                yield (key, "address"), value, clause
    if host.rates.redis is not None and not _REDIS.fullmatch(host.rates.redis):
        clause = (
            "allowed is redis://HOST:PORT/DB, rediss://… or unix:///PATH, without a password: "
            "that stands in MCP_BRIDGE_REDIS_PASSWORD, or is the proxy's credential redis-password"
        )
        yield ("rates", "redis"), "", clause
    if host.operator.port and host.operator.port == host.listen.port:
        clause = "allowed is another port than listen.port"
        yield ("operator", "port"), host.operator.port, clause
    if host.audit.required and not host.audit.file:
        clause = "allowed is true only with audit.file, without which nothing is written"
        yield ("audit", "required"), True, clause
    for key in ("session_idle", "body_timeout"):
        if getattr(host.limits, key) > MAX_SECONDS:
            yield ("limits", key), getattr(host.limits, key), "allowed is at most 366 days"
    for index, value in enumerate(host.http.allowed_hosts):
        if not _HOST.fullmatch(value.lower()):
            yield ("http", "allowed_hosts", index), value, "allowed is HOST or HOST:PORT"
    for index, value in enumerate(host.http.allowed_origins):
        if not _ORIGIN.fullmatch(value.lower()):
            clause = "allowed is SCHEME://HOST or SCHEME://HOST:PORT"
            yield ("http", "allowed_origins", index), value, clause
    for index, value in enumerate(host.http.trusted_proxies):
        try:
            ipaddress.ip_network(value)
        except ValueError:
            clause = "allowed is an IP address or a network such as 10.0.0.0/8"
            yield ("http", "trusted_proxies", index), value, clause
    yield from tls_relations(host.tls)
    yield from http_relations(host.http)
    yield from oauth_relations(host.oauth, host.http.public_url)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address("127.0.0.1" if text == "localhost" else text)
    except ValueError:
        return None
