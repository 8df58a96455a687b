"""Servers that harm themselves: hostile.py MODE [WORD…]. The modes are the functions below."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

import stdio
from stdio import text, tool


def serve(*, ignore: bool = False) -> None:
    """An obedient server of one tool, `echo`, until stdin ends."""
    for message in stdio.messages():
        answer(message)
    while ignore:
        signal.pause()


def answer(message: dict[str, Any]) -> None:
    method = message.get("method")
    if "id" not in message:
        return
    if method == "initialize":
        stdio.result(message["id"], stdio.initialize_result(message, {"tools": {}}))
    elif method == "tools/list":
        stdio.result(message["id"], {"tools": [tool("echo", text="string"), tool("pid")]})
    elif method == "tools/call":
        call(message["id"], message["params"])
    elif method == "ping":
        stdio.result(message["id"], {})
    else:
        stdio.error(message["id"], -32601, f"method not found: {method}")


def call(ident: Any, params: dict[str, Any]) -> None:
    arguments = params.get("arguments") or {}
    text(ident, os.getpid() if params["name"] == "pid" else arguments.get("text", ""))


def exit_at_once(status: str = "1") -> NoReturn:
    os._exit(int(status))


def big_hello(filler: str = '"xx"') -> None:
    """Answers initialize with more than a proxy parses unasked, then serves."""
    message = next(stdio.messages())
    result = stdio.initialize_result(message, {"tools": {}, "experimental": {"filler": "?"}})
    line = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
    stdio.write(line.replace('"?"', "[" + ",".join([filler] * 40_000) + "]").encode() + b"\n")
    serve()


def big_junk_hello() -> None:
    """The same, but its middle is no JSON."""
    big_hello("x x")


def fatal() -> NoReturn:
    """Says why on stderr, then exits before it answers anything."""
    os.write(2, b"FATAL: no API key\n")
    os._exit(3)


def junk() -> None:
    """Prints what is no JSON-RPC, for ever, as fast as it is read."""
    while True:
        os.write(1, b"this is not JSON-RPC {]}\x00\xff\n" * 50)


def silent() -> None:
    """Reads everything and never answers initialize."""
    for _ in stdio.messages():
        pass


def deaf() -> None:
    """Answers initialize, then reads nothing any more and never ends by itself."""
    answer(next(stdio.messages()))
    while True:
        signal.pause()


def ignore_stop() -> None:
    """Ignores the end of stdin and SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(ignore=True)


def flush(path: str, seconds: str = "3") -> None:
    """Needs a while after the end of stdin to write its state."""
    serve()
    Path(f"{path}.ending").touch()
    time.sleep(float(seconds))
    Path(path).write_text("flushed", encoding="utf-8")


def big(mib: str = "20") -> None:
    """Answers each call with this many MiB on one line."""
    global call  # noqa: PLW0603 - a mode replaces one function
    filler = "x" * (int(mib) << 20)
    call = lambda ident, params: text(ident, filler)  # noqa: E731
    serve()


def lsp() -> None:
    """Frames its answers as LSP does, with Content-Length headers."""

    def framed(data: bytes) -> None:
        head = f"Content-Length: {len(data) - 1}\r\n\r\n".encode()
        view = memoryview(head + data[:-1])
        while view:
            view = view[os.write(1, view) :]

    stdio.write = framed
    stdio.send = lambda message: framed(stdio.encode({"jsonrpc": "2.0", **message}))
    serve()


def poison() -> None:
    """Exits on a notification that it does not know; `wait` never answers, `waits` counts them."""
    waits = 0
    for message in stdio.messages():
        if "id" not in message and message.get("method") != "notifications/initialized":
            os.write(2, f"unknown notification {message.get('method')}\n".encode())
            os._exit(4)
        name = message.get("params", {}).get("name")
        if name == "wait":
            waits += 1
        elif name == "waits":
            text(message["id"], waits)
        else:
            answer(message)


def stderr_for_ever(piece: str = "noise without end ", size: str = "90") -> None:
    """Floods stderr with lines of so many bytes without a pause while it answers."""
    line = (piece * int(size))[: int(size)].encode() + b"\n"

    def flood() -> None:
        while True:
            os.write(2, line * max(1, 4096 // len(line)))

    threading.Thread(target=flood, daemon=True).start()
    serve()


def notify_for_ever(method: str = "notifications/tools/list_changed") -> None:
    """Floods stdout with one short notification while it answers."""
    line = stdio.encode({"jsonrpc": "2.0", "method": method})

    def flood() -> None:
        while True:
            stdio.write(line * 100)

    answer(next(stdio.messages()))
    threading.Thread(target=flood, daemon=True).start()
    serve()


def lines_for_ever(line: str) -> None:
    """Floods stdout with one short line while it answers."""
    piece = line.encode() + b"\n"

    def flood() -> None:
        while True:
            stdio.write(piece * 500)

    answer(next(stdio.messages()))
    threading.Thread(target=flood, daemon=True).start()
    serve()


def says(first: str, *others: str) -> None:
    """Answers its first requests with these texts, where ID stands for theirs, then serves."""
    texts = [first, *others]
    for message in stdio.messages():
        if "id" in message and texts:
            stdio.write(texts.pop(0).replace("ID", str(message["id"])).encode() + b"\n")
        else:
            answer(message)


def chatty() -> None:
    """Says something in the same breath as its initialize answer."""
    message = next(stdio.messages())
    result = stdio.initialize_result(message, {"tools": {}, "logging": {}})
    said = {"method": "notifications/message", "params": {"level": "info", "data": "here"}}
    lines = ({"id": message["id"], "result": result}, said)
    stdio.write(b"".join(stdio.encode({"jsonrpc": "2.0", **line}) for line in lines))
    serve()


def refuse() -> None:
    """Answers initialize with an error."""
    for message in stdio.messages():
        if "id" in message:
            stdio.error(message["id"], -32603, "no licence")


def stdout_closed() -> None:
    """Closes stdout at once and lives on."""
    os.close(1)
    signal.pause()


def nonsense() -> None:
    """Answers initialize with a result of no use."""
    for message in stdio.messages():
        if "id" in message:
            stdio.result(message["id"], json.loads("[1]"))


def grandchild() -> None:
    """Leaves a child in a session of its own that holds the pipes open."""
    if os.fork() == 0:
        os.setsid()
        while True:
            signal.pause()
    serve()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
