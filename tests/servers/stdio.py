"""The wire of the fakes: JSON-RPC lines over stdin and stdout, standard library only."""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
members: dict[str, Any] = {}  # of every result, beside its own
_lock = threading.Lock()


def write(data: bytes) -> None:
    """All of it, as one piece among those of other threads."""
    with _lock:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


def encode(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def send(message: Any) -> None:
    write(encode({"jsonrpc": "2.0", **message}))


def result(ident: Any, value: Any) -> None:
    send({"id": ident, "result": {**members, **value} if members else value})


def text(ident: Any, value: Any) -> None:
    """A tool's result: a string as it is, anything else as JSON."""
    shown = value if isinstance(value, str) else json.dumps(value)
    result(ident, {"content": [{"type": "text", "text": shown}]})


def error(ident: Any, code: int, message: str, data: Any = None) -> None:
    more = {} if data is None else {"data": data}
    send({"id": ident, "error": {"code": code, "message": message, **more}})


def notify(method: str, params: dict[str, Any] | None = None) -> None:
    send({"method": method, **({} if params is None else {"params": params})})


def messages() -> Iterator[dict[str, Any]]:
    """Every message until stdin ends."""
    for line in sys.stdin.buffer:
        yield json.loads(line)


def initialize_result(message: dict[str, Any], capabilities: dict[str, Any]) -> dict[str, Any]:
    asked = message["params"].get("protocolVersion")
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
        "capabilities": capabilities,
        "serverInfo": {"name": "fake", "version": "1.0.0"},
    }


def tool(name: str, **properties: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {k: {"type": v} for k, v in properties.items()}}
    return {"name": name, "description": f"the tool {name}", "inputSchema": schema}


def after(seconds: float, function: Callable[..., None], *arguments: Any) -> None:
    """Run it later in a thread that does not keep the process alive; at once for 0."""
    if seconds <= 0:
        function(*arguments)
        return
    timer = threading.Timer(seconds, function, arguments)
    timer.daemon = True
    timer.start()
