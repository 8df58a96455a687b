"""`mcp-bridge demo`: a small MCP server on stdin and stdout, for first steps.

Standard library only and no network, so that it starts fast and everywhere. Calls that take time
run in threads; stdin's end ends the server, as the protocol has it.
"""

import argparse
import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.model.errors import INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR
from autobot_mcp_bridge.model.versions import HANDSHAKE, LATEST_HANDSHAKE

LONGEST_SLEEP = 3600.0
STEP = 0.5  # seconds between two progress notifications of `sleep`
MOST_SLEEPING = 64  # calls of `sleep` at a time; more are refused

Json = dict[str, Any]
_write_lock = threading.Lock()
_cancelled: dict[str, threading.Event] = {}


class ToolError(Exception):
    """The tool cannot do that; the client's model reads the message."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    subparsers.add_parser("demo", help="be a small MCP server on stdin and stdout")


def run(_args: argparse.Namespace) -> int:
    for line in sys.stdin.buffer:
        if line.strip():
            _take(line)
    return 0


def _take(line: bytes) -> None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        _send({"id": None, "error": {"code": PARSE_ERROR, "message": "not JSON"}})
        return
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return  # an answer, and this server asks nothing
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    if "id" not in message:
        if message["method"] == "notifications/cancelled":
            event = _cancelled.get(_key(params.get("requestId")))
            if event is not None:
                event.set()
        return
    _answer(message["id"], message["method"], params)


def _answer(ident: object, method: str, params: Json) -> None:
    match method:
        case "initialize":
            _send({"id": ident, "result": _initialize(params)})
        case "ping":
            _send({"id": ident, "result": {}})
        case "tools/list":
            _send({"id": ident, "result": {"tools": [_listed(name) for name in TOOLS]}})
        case "tools/call":
            _call(ident, params)
        case _:
            error = {"code": METHOD_NOT_FOUND, "message": f"no method {method}"}
            _send({"id": ident, "error": error})


def _initialize(params: Json) -> Json:
    offered = params.get("protocolVersion")
    return {
        "protocolVersion": offered if offered in HANDSHAKE else LATEST_HANDSHAKE,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "mcp-bridge-demo", "version": __version__},
        "instructions": "hello, add, sleep and clock show that calls arrive and are answered.",
    }


def _call(ident: object, params: Json) -> None:
    name = params.get("name")
    arguments = params.get("arguments") or {}
    if name not in TOOLS or not isinstance(arguments, dict):
        error = {"code": INVALID_PARAMS, "message": f"no tool {name!r}"}
        _send({"id": ident, "error": error})
    elif name != "sleep":
        _finish(ident, lambda: TOOLS[name][2](arguments))
    elif len(_cancelled) >= MOST_SLEEPING:
        _finish(ident, _too_many)
    else:
        _cancelled[_key(ident)] = threading.Event()
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        threading.Thread(target=_sleep, args=(ident, arguments, token), daemon=True).start()


def _finish(
    ident: object, tool: Callable[[], str], cancelled: threading.Event | None = None
) -> None:
    try:
        text, failed = tool(), False
    except ToolError as error:
        text, failed = str(error), True
    # A cancelled request gets no answer (2025-11-25 basic/utilities/cancellation).
    if cancelled is None or not cancelled.is_set():
        result = {"content": [{"type": "text", "text": text}], "isError": failed}
        _send({"id": ident, "result": result})


def _sleep(ident: object, arguments: Json, token: object) -> None:
    key = _key(ident)
    cancelled = _cancelled[key]

    def sleep() -> str:
        seconds = _number(arguments, "seconds")
        if not 0 <= seconds <= LONGEST_SLEEP:
            raise ToolError(f"seconds: allowed is 0 to {LONGEST_SLEEP:.0f}")
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not cancelled.wait(min(left, STEP)):
            if token is not None:
                done = min(seconds, seconds - (end - time.monotonic()))
                progress = {"progressToken": token, "progress": done, "total": seconds}
                _send({"method": "notifications/progress", "params": progress})
        return f"slept {seconds:g} s"

    try:
        _finish(ident, sleep, cancelled)
    finally:
        del _cancelled[key]


def _too_many() -> str:
    raise ToolError(f"{MOST_SLEEPING} calls are sleeping already")


def _hello(arguments: Json) -> str:
    name = arguments.get("name")
    if not isinstance(name, str):
        raise ToolError("name: allowed is a text")
    return f"Hello, {name}!"


def _add(arguments: Json) -> str:
    total = _number(arguments, "a") + _number(arguments, "b")
    return str(int(total)) if total == int(total) else str(total)


def _clock(_arguments: Json) -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _number(arguments: Json, name: str) -> float:
    value = arguments.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ToolError(f"{name}: allowed is a number")
    return float(value)


_NUMBER = {"type": "number"}
TOOLS: dict[str, tuple[str, dict[str, Json], Callable[[Json], str]]] = {
    "hello": ("Greet somebody", {"name": {"type": "string"}}, _hello),
    "add": ("Add two numbers", {"a": _NUMBER, "b": _NUMBER}, _add),
    "sleep": ("Wait so many seconds", {"seconds": _NUMBER}, lambda _arguments: ""),
    "clock": ("Tell the time in UTC", {}, _clock),
}


def _listed(name: str) -> Json:
    text, properties, _ = TOOLS[name]
    schema: Json = {"type": "object", "properties": properties}
    if properties:
        schema["required"] = list(properties)
    return {"name": name, "description": text, "inputSchema": schema}


def _key(ident: object) -> str:
    return json.dumps(ident)


def _send(message: Json) -> None:
    line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n"
    # A reader that has gone ends this server by stdin's end too.
    with _write_lock, contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
