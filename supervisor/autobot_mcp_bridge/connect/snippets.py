"""A server as one client writes it, and what that changes in a file that the client has already."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.connect.change import Append, Change, Set, Unset
from autobot_mcp_bridge.connect.clients import Client, Remote
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import ServerId

_HEADER = "Authorization"
_INPUTS = "inputs"
# What says how a server is reached: of these none is left that the snippet does not set. All else
# in an entry (a deadline, what is let through without asking, further headers) is the user's.
_REACHED_BY = ("type", "url", "serverUrl", "httpUrl", "command", "args", "bearer_token_env_var")
_OF_HTTP = ("headers", "http_headers", "env_http_headers")


@dataclass(frozen=True, slots=True)
class Snippet:
    """One entry in a client's table of servers.

    Attributes:
        server: which server it leads to.
        name: the entry's own.
        entry: its keys.
        variable: the environment variable that the client takes the token from, if any.
        asked: an entry of `inputs`, by which the client asks for the token; None: it does not.
    """

    client: Client
    server: ServerId
    name: str
    entry: Mapping[str, Any]
    variable: str | None = None
    asked: Mapping[str, Any] | None = None

    @property
    def document(self) -> dict[str, Any]:
        """A whole file with nothing else in it."""
        inputs = {_INPUTS: [dict(self.asked)]} if self.asked else {}
        return {**inputs, self.client.key: {self.name: dict(self.entry)}}

    def changes(self, document: Mapping[str, Any], *, replace: bool = False) -> list[Change]:
        """What has to be changed in a file with that content; nothing, if it stands there.

        Raises:
            DataError: a part on the way to the entry is something else than a table.
            UsageError: the entry is another server's, and `replace` is not given.
        """
        path = (self.client.key, self.name)
        table = _table(document, self.client.key, (self.client.key,))
        there = _table(table, self.name, path)
        changes: list[Change] = []
        if not there:
            changes.append(Set(path, dict(self.entry)))
        else:
            if not replace and not self._leads_there(there):
                raise UsageError(
                    f"its entry {self.name} is not of {self.server}; "
                    "--as gives another name, --replace replaces it"
                )
            changes += _differences(path, there, self.entry)
        if self.asked is not None:
            changes += self._question(document)
        return changes

    def _leads_there(self, entry: Mapping[str, Any]) -> bool:
        """Whether the entry is one of ours, for this server, wherever the proxy was then."""
        urls = [entry.get(key) for key in ("url", "serverUrl", "httpUrl")]
        arguments = entry.get("args")
        words = arguments if isinstance(arguments, list) else []
        if "stdio" in words and self.server.instance in words:
            return True
        return any(
            isinstance(url, str) and url.partition("?")[0].endswith(self.server.path)
            for url in (*urls, *words)
        )

    def _question(self, document: Mapping[str, Any]) -> Iterator[Change]:
        if self.asked is None:
            return
        if _INPUTS not in document:
            yield Set((_INPUTS,), [dict(self.asked)])
            return
        inputs = document[_INPUTS]
        if not isinstance(inputs, list):
            raise DataError(f"{_INPUTS} is no list")
        if not any(isinstance(it, dict) and it.get("id") == self.asked["id"] for it in inputs):
            yield Append((_INPUTS,), dict(self.asked))


def name_of(server: ServerId) -> str:
    """The server's name as each of the clients allows it: a-z, 0-9 and `-`."""
    return server.instance.replace(".", "-")


def over_http(client: Client, remote: Remote, server: ServerId, name: str, url: str) -> Snippet:
    """The entry of a client that speaks HTTP itself.

    Args:
        client: which.
        remote: how it writes that.
        server: which server.
        name: of the entry.
        url: the server's endpoint.
    """
    entry: dict[str, Any] = {"type": remote.kind} if remote.kind else {}
    entry[remote.url] = url
    if remote.asks:
        asked = {
            "type": "promptString",
            "id": f"mcp-bridge-{name}",
            "description": f"Token of {server} on mcp-bridge",
            "password": True,
        }
        bearer = f"Bearer {str(remote.reference).format(asked['id'])}"
        return Snippet(client, server, name, {**entry, "headers": {_HEADER: bearer}}, asked=asked)
    variable = f"MCP_BRIDGE_TOKEN_{name.upper().replace('-', '_')}"
    if remote.variable is not None:
        entry[remote.variable] = variable
    else:
        entry["headers"] = {_HEADER: f"Bearer {str(remote.reference).format(variable)}"}
    return Snippet(client, server, name, entry, variable=variable)


def over_stdio(client: Client, server: ServerId, name: str, argv: Sequence[str]) -> Snippet:
    """The entry of a client that starts a program, which takes the token from a file."""
    kind = {"type": client.stdio_kind} if client.stdio_kind else {}
    return Snippet(client, server, name, {**kind, "command": argv[0], "args": [*argv[1:]]})


def _table(document: Mapping[str, Any], key: str, path: tuple[str, ...]) -> Mapping[str, Any]:
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise DataError(f"{'.'.join(path)} is no table")
    return value


def _differences(
    path: tuple[str, ...], there: Mapping[str, Any], wanted: Mapping[str, Any]
) -> Iterator[Change]:
    for key in (*_REACHED_BY, *(_OF_HTTP if "command" in wanted else ())):
        if key in there and key not in wanted:
            yield Unset((*path, key))
    for key, value in wanted.items():
        old = there.get(key)
        if not isinstance(value, dict) or not isinstance(old, dict):
            if key not in there or old != value:
                yield Set((*path, key), value)
            continue
        # Headers are named without regard to case (RFC 9110 5.1); others of the user's stay.
        for other in old:
            if other.lower() == _HEADER.lower() and other not in value:
                yield Unset((*path, key, other))
        for inner, text in value.items():
            if old.get(inner) != text:
                yield Set((*path, key, inner), text)
