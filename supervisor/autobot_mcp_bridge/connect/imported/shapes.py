"""Where in a document the servers stand; the document's own keys say whose it is.

| keys | whose |
|---|---|
| `mcpServers`, an object | Claude Desktop, Claude Code, Cursor, Windsurf, Gemini CLI, and most others |
| `projects.*.mcpServers` | Claude Code's own file, `~/.claude.json` |
| `servers`, with `inputs` | VS Code's mcp.json |
| `mcp.servers`, `mcp.inputs` | VS Code's settings.json |
| `mcp_servers` | Codex |
| `mcpServers`, a list | Continue |
| `extensions` | Goose |
| `context_servers` | Zed |
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.problem import json_path
from autobot_mcp_bridge.connect.imported.placeholders import Input

MOST_ENTRIES = 1000
# What makes an object a server, where nothing else says that it is one.
_STARTS = frozenset({"command", "cmd", "url", "serverUrl", "httpUrl", "uri"})
_OWN = "version"  # of servers.json, whose servers are a list
Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Raw:
    """One entry as the client has it.

    Attributes:
        name: as the client calls it.
        loc: where it stands.
        data: its keys; anything, for nothing is checked yet.
        inputs: what the document's placeholders ask for.
        off: why the document has it disabled elsewhere; empty: it has not.
    """

    name: str
    loc: Loc
    data: Any = field(repr=False)
    inputs: Mapping[str, Input] = field(default_factory=dict)
    off: str = ""

    @property
    def where(self) -> str:
        return json_path(self.loc)


def entries(document: Mapping[str, Any], file: str) -> list[Raw]:
    """Every server of the document, in its order.

    Raises:
        DataError: there is no place for servers in it, or there are too many.
    """
    found = list(_entries(document))
    if len(found) > MOST_ENTRIES:
        raise DataError(f"{file}: allowed are at most {MOST_ENTRIES} servers")
    if not found and not any(True for _ in _places(document)):
        raise DataError(
            f"{file}: no servers in it; understood are mcpServers, servers, mcp.servers, "
            "mcp_servers, extensions and context_servers"
        )
    return found


def _entries(document: Mapping[str, Any]) -> Iterator[Raw]:
    off = _names(document, ("disabledMcpServers", "disabledMcpjsonServers"))
    for loc, servers, inputs in _places(document):
        asked = _inputs(inputs)
        if isinstance(servers, Mapping):
            named = [(name, (*loc, name), data) for name, data in servers.items()]
        else:
            named = [
                (_name(data, index), (*loc, index), data) for index, data in enumerate(servers)
            ]
        for name, place, data in named:
            reason = "the file lists it among those that are disabled" if name in off else ""
            yield Raw(name, place, data, asked, reason)


def _places(document: Mapping[str, Any]) -> Iterator[tuple[Loc, Any, Any]]:
    """Each collection of servers: its place, itself, and the inputs that belong to it."""
    inputs = document.get("inputs")
    known = False
    for key in ("mcpServers", "mcp_servers", "extensions", "context_servers"):
        if isinstance(found := document.get(key), Mapping | list):
            known = True
            yield (key,), found, inputs
    if _OWN not in document and isinstance(found := document.get("servers"), Mapping):
        known = True
        yield ("servers",), found, inputs
    match document:
        case {"mcp": {"servers": Mapping() as found, **rest}}:
            known = True
            yield ("mcp", "servers"), found, rest.get("inputs")
        case {"mcp.servers": Mapping() as found}:
            known = True
            yield ("mcp.servers",), found, inputs
    if isinstance(projects := document.get("projects"), Mapping):
        for path, project in projects.items():
            if isinstance(project, Mapping) and isinstance(
                found := project.get("mcpServers"), Mapping
            ):
                known = True
                yield ("projects", path, "mcpServers"), found, None
    values = list(document.values())
    if not known and values and all(isinstance(v, Mapping) and _STARTS & v.keys() for v in values):
        yield (), document, None


def _inputs(found: Any) -> dict[str, Input]:
    asked: dict[str, Input] = {}
    for each in found if isinstance(found, list) else ():
        match each:
            case {"id": str() as name}:
                default = each.get("default")
                asked[name] = Input(
                    str(each.get("description", "")),
                    each.get("password") is True,
                    default if isinstance(default, str) else None,
                )
    return asked


def _names(document: Mapping[str, Any], keys: tuple[str, ...]) -> frozenset[str]:
    found = [name for key in keys for name in _list(document.get(key))]
    return frozenset(name for name in found if isinstance(name, str))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _name(data: Any, index: int) -> str:
    name = data.get("name") if isinstance(data, Mapping) else None
    return name if isinstance(name, str) and name else f"server-{index + 1}"
