"""JSON-RPC messages: what has to be known of one, beside its bytes, which pass as they are."""

import json
from dataclasses import dataclass
from typing import Any

import orjson

from autobot_mcp_bridge.model.errors import UNAVAILABLE
from autobot_mcp_bridge.model.mirrored import (
    METHOD_HEADER,
    NAME_HEADER,
    NAMED_BY,
    PARAM_HEADER,
    Mirrored,
    header_value,
)
from autobot_mcp_bridge.model.versions import META_VERSION, MODERN

VERSION_HEADER = "MCP-Protocol-Version"
# What may be asked once more although the first may have arrived: it changes nothing.
REPEATABLE = frozenset(
    {
        "completion/complete",
        "initialize",
        "notifications/initialized",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "subscriptions/listen",
        "tools/list",
    }
)


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        line: its bytes, without a line break.
        method: of a request or notification; empty: it is an answer.
        id: None for a notification; JSON-RPC's null counts as none.
    """

    line: bytes
    method: str
    id: str | float | None
    params: dict[str, Any]
    body: dict[str, Any]

    @property
    def is_request(self) -> bool:
        return self.method != "" and self.id is not None

    @property
    def version(self) -> str | None:
        """The revision that the message itself states, as those from 2026-07-28 on do."""
        meta = self.params.get("_meta")
        stated = meta.get(META_VERSION) if isinstance(meta, dict) else None
        if isinstance(stated, str) and stated.isascii() and stated.isprintable():
            return stated
        return MODERN if self.method == "server/discover" else None

    def answers(self, other: "Message") -> bool:
        """Whether it is the answer to a request; 1 and "1" are two ids."""
        return self.method == "" and type(self.id) is type(other.id) and self.id == other.id


def parse(data: bytes) -> Message | None:
    """Read one message; None for what is none. Whitespace between its parts becomes blanks."""
    line = data.strip()
    if b"\n" in line or b"\r" in line:  # JSON has them nowhere but between its parts
        line = line.replace(b"\r", b" ").replace(b"\n", b" ")
    try:
        body = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            body = json.loads(line)  # a lone surrogate, 1e400
        except (ValueError, RecursionError):
            return None
    if not isinstance(body, dict):
        return None
    method, ident, params = body.get("method", ""), body.get("id"), body.get("params")
    if not isinstance(method, str) or not isinstance(ident, str | int | float | None):
        return None
    if method == "" and not ("result" in body or "error" in body):
        return None
    return Message(line, method, ident, params if isinstance(params, dict) else {}, body)


def mirrored_headers(message: Message, tools: dict[str, tuple[Mirrored, ...]]) -> dict[str, str]:
    """The headers of a message at 2026-07-28 that repeat what its body says.

    Args:
        message: it.
        tools: by name, the parameters that have headers.
    """
    headers = {METHOD_HEADER: header_value(message.method)}
    name = message.params.get(NAMED_BY.get(message.method, ""))
    if isinstance(name, str):
        headers[NAME_HEADER] = header_value(name)
    if message.method == "tools/call" and isinstance(name, str):
        for each in tools.get(name, ()):
            match each.find(message.params.get("arguments")):
                case bool(value):
                    headers[PARAM_HEADER + each.header] = str(value).lower()
                case int(value):
                    headers[PARAM_HEADER + each.header] = str(value)
                case str(value):
                    headers[PARAM_HEADER + each.header] = header_value(value)
    return headers


def error_line(
    ident: object, text: str, *, code: int = UNAVAILABLE, data: dict[str, object] | None = None
) -> bytes:
    """An answer of our own."""
    error: dict[str, object] = {"code": code, "message": text}
    if data:
        error["data"] = data
    return orjson.dumps({"jsonrpc": "2.0", "id": ident, "error": error})


def passed_on(ident: object, error: dict[str, object]) -> bytes:
    """The upstream's error as the answer to the request that it came for."""
    try:
        return orjson.dumps({"jsonrpc": "2.0", "id": ident, "error": error})
    except TypeError:  # a number or half a character that it cannot write
        return json.dumps({"jsonrpc": "2.0", "id": ident, "error": error}).encode()
