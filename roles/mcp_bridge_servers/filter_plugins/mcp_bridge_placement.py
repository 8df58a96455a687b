"""Which host serves which MCP server, decided by the server's identifier alone.

    {{ 'acme.web.files' | mcp_bridge_host_of(groups['mcp_bridge'], 'replicated') }}   one host
    {{ definition | mcp_bridge_instance }}   the name that list and apply have for it
    {{ servers | mcp_bridge_servers_on(inventory_hostname, groups['mcp_bridge'], 'replicated') }}

`simple`: the first host has all servers. `replicated`: each server is on one host, by rendezvous
hashing (Thaler and Ravishankar, 1998): every host draws a number from its name and the server's,
and the highest one has the server. Nothing is remembered, the order of the hosts does not count,
a host that comes takes servers from the others and moves none between them, and one that goes
leaves only its own to be placed anew.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

SIMPLE = "simple"
REPLICATED = "replicated"
MODES = (SIMPLE, REPLICATED)

# The names that `mcp-bridge check` allows: model/names.py of the program, which the machine that
# runs Ansible need not have. tests/unit/rollout compares the two.
PART = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
UNIT_SUFFIXES = frozenset(
    {
        *("service", "socket", "device", "mount", "automount", "swap"),
        *("target", "path", "timer", "slice", "scope"),
    }
)
DEFAULT_TENANT = "default"
MAX_INSTANCE_LENGTH = 80
_KEYS = ("tenant", "project", "name")


class PlacementError(ValueError):
    """Something cannot be placed; the message says what and what is allowed."""


def instance_of(server: object) -> str:
    """The instance name: of a definition of servers.json, or of a name as people type it.

    `default.files` and `files` are the same server, and get the same name.

    Raises:
        PlacementError: it is not the identifier of a server; the message says what is.
    """
    if isinstance(server, Mapping):
        tenant, project, name = (server.get(key) for key in _KEYS)
        tenant = DEFAULT_TENANT if tenant is None else tenant
    elif isinstance(server, str):
        parts = server.split(".")
        if len(parts) > len(_KEYS):
            raise PlacementError(
                f"{server!r} is no server: allowed is NAME, TENANT.NAME or TENANT.PROJECT.NAME"
            )
        name, tenant = parts[-1], parts[0] if parts[1:] else DEFAULT_TENANT
        project = parts[1] if parts[2:] else None
    else:
        raise PlacementError(
            f"a {type(server).__name__} is no server: allowed is its name, or its definition with "
            "name, tenant and project"
        )
    for key, part in zip(_KEYS, (tenant, project, name), strict=True):
        if part is None and key == "project":
            continue
        if not isinstance(part, str) or PART.fullmatch(part) is None:
            raise PlacementError(f"{key} {part!r} of a server: allowed is {PART.pattern}")
    if name in UNIT_SUFFIXES:
        raise PlacementError(f"name {name!r} of a server: the name of a unit type is not allowed")
    if project is not None:
        instance = f"{tenant}.{project}.{name}"
    else:
        instance = f"{name}" if tenant == DEFAULT_TENANT else f"{tenant}.{name}"
    if len(instance) > MAX_INSTANCE_LENGTH:
        raise PlacementError(f"server {instance!r}: at most {MAX_INSTANCE_LENGTH} characters")
    return instance


def host_of(server: object, hosts: object, mode: object = REPLICATED) -> str:
    """The one host, as it is named among the hosts, that serves this server.

    Raises:
        PlacementError: bad identifier, hosts or mode; the message says what is allowed.
    """
    return _placer(hosts, mode)(instance_of(server))


def servers_on(
    servers: object, host: object, hosts: object, mode: object = REPLICATED
) -> list[Any]:
    """Those of the servers, in their order, whose host is this one.

    Raises:
        PlacementError: as `host_of`; the host is none of the hosts; a server is there twice.
    """
    place, names = _placer(hosts, mode), _hosts(hosts)
    if host not in names:
        raise PlacementError(f"host {host!r} is none of {', '.join(names)}")
    if isinstance(servers, (str, Mapping)) or not isinstance(servers, Iterable):
        raise PlacementError(f"servers: allowed is a list, not a {type(servers).__name__}")
    found, seen = [], set()
    for server in servers:
        instance = instance_of(server)
        if instance in seen:
            raise PlacementError(f"server {instance!r} is there twice")
        seen.add(instance)
        if place(instance) == host:
            found.append(server)
    return found


def _placer(hosts: object, mode: object) -> Callable[[str], str]:
    names = _hosts(hosts)
    if mode not in MODES:
        raise PlacementError(f"mode {mode!r}: allowed is {' or '.join(MODES)}")
    if mode == SIMPLE:
        return lambda _: names[0]
    return lambda instance: max(names, key=lambda host: (_weight(host, instance), host))


def _weight(host: str, instance: str) -> bytes:
    # Changing this moves nearly every server: the golden table in the tests stands for it.
    return hashlib.sha256(f"{host}\0{instance}".encode()).digest()


def _hosts(hosts: object) -> list[str]:
    if isinstance(hosts, (str, Mapping)) or not isinstance(hosts, Iterable):
        raise PlacementError(f"hosts: allowed is a list of names, not a {type(hosts).__name__}")
    names = list(hosts)
    if not names:
        raise PlacementError("hosts: there is none, at least one is needed")
    for name in names:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise PlacementError(f"host {name!r}: allowed is a name of the inventory")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PlacementError(f"hosts: {', '.join(twice)} is there twice")
    return names


def _told_by_ansible(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same as a filter: what is wrong is Ansible's own kind of error."""

    def as_filter(*values: object, **named: object) -> Any:
        from ansible.errors import AnsibleFilterError

        try:
            return function(*values, **named)
        except PlacementError as error:
            raise AnsibleFilterError(f"placement: {error}") from error

    return as_filter


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "mcp_bridge_instance": _told_by_ansible(instance_of),
            "mcp_bridge_host_of": _told_by_ansible(host_of),
            "mcp_bridge_servers_on": _told_by_ansible(servers_on),
        }
