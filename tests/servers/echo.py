"""The well-behaved fake, with tools that misbehave on demand.

    echo.py [--tools a,b] [--page N] [--start SECONDS] [--starts FILE]

--tools adds tools that return their own name, --page lists N tools at a time, --start delays the
initialize answer, --starts appends the pid to a file at each start. Slow tools run in threads, so
no call holds up another here: what a test sees of that is the gateway's.
"""

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from typing import Any

import stdio
from stdio import after, error, notify, text, tool

CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "logging": {},
    "prompts": {},
}
TEXT = "note:///one"


class Server:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.named = [name for name in options.tools.split(",") if name]
        self.counter = 0
        self.seen: Counter[str] = Counter()
        self.level = ""
        self.subscribed: set[str] = set()
        self.more_tools: list[str] = []
        self.waiting: dict[Any, str] = {}  # id of an open `wait` call: its tag
        self.cancelled: list[str] = []
        self.asked: dict[str, tuple[threading.Event, list[Any]]] = {}
        self.initialized: dict[str, Any] = {}

    def handle(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method is None:
            self.answered(message)
            return
        self.seen[method] += 1
        params = message.get("params") or {}
        if "id" not in message:
            if method == "notifications/cancelled":
                self.cancel(params.get("requestId"))
            return
        handler = getattr(self, "do_" + method.replace("/", "_"), None)
        if handler is None:
            error(message["id"], -32601, f"method not found: {method}")
        else:
            handler(message, message["id"], params)

    # Methods

    def do_initialize(self, message: dict[str, Any], ident: Any, params: dict[str, Any]) -> None:
        self.initialized = params
        time.sleep(self.options.start)
        stdio.result(ident, stdio.initialize_result(message, CAPABILITIES))

    def do_ping(self, message: Any, ident: Any, params: Any) -> None:
        stdio.result(ident, {})

    def do_tools_list(self, message: Any, ident: Any, params: dict[str, Any]) -> None:
        own = sorted(name[5:] for name in dir(self) if name.startswith("tool_"))
        names = [*own, *self.named, *self.more_tools]
        cursor = str(params.get("cursor") or 0)
        if not (cursor.isascii() and cursor.isdecimal()):
            error(ident, -32602, "no such cursor")
            return
        start = int(cursor)
        end = start + (self.options.page or len(names))
        more = {"nextCursor": str(end)} if end < len(names) else {}
        stdio.result(ident, {"tools": [tool(name) for name in names[start:end]], **more})

    def do_tools_call(self, message: Any, ident: Any, params: dict[str, Any]) -> None:
        name, arguments = params.get("name"), params.get("arguments") or {}
        if name in self.named or name in self.more_tools:
            text(ident, name)
        elif handler := getattr(self, f"tool_{name}", None):
            handler(ident, arguments, params)
        else:
            error(ident, -32602, f"unknown tool: {name}")

    def do_resources_list(self, message: Any, ident: Any, params: Any) -> None:
        stdio.result(ident, {"resources": [{"uri": TEXT, "name": "one", "mimeType": "text/plain"}]})

    def do_resources_read(self, message: Any, ident: Any, params: dict[str, Any]) -> None:
        if params["uri"] != TEXT:
            error(ident, -32002, "resource not found", {"uri": params["uri"]})
            return
        content = {"uri": TEXT, "mimeType": "text/plain", "text": "the text of one"}
        stdio.result(ident, {"contents": [content]})

    def do_resources_subscribe(self, message: Any, ident: Any, params: dict[str, Any]) -> None:
        self.subscribed.add(params["uri"])
        stdio.result(ident, {})

    def do_resources_unsubscribe(self, message: Any, ident: Any, params: dict[str, Any]) -> None:
        self.subscribed.discard(str(params["uri"]))
        stdio.result(ident, {})

    def do_logging_setLevel(self, message: Any, ident: Any, params: dict[str, Any]) -> None:  # noqa: N802 - MCP's name
        self.level = params["level"]
        stdio.result(ident, {})

    def do_prompts_list(self, message: Any, ident: Any, params: Any) -> None:
        stdio.result(ident, {"prompts": [{"name": "greet"}]})

    # Ordinary tools

    def tool_echo(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        value = str(arguments.get("text", "")) + "x" * int(arguments.get("size", 0))
        after(float(arguments.get("delay", 0)), text, ident, value)

    def tool_length(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        text(ident, len(arguments["text"]))

    def tool_mirror(self, ident: Any, arguments: Any, params: Any) -> None:
        text(ident, params)

    def tool_raw(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        """The result is this very text, not re-encoded."""
        head = f'{{"jsonrpc":"2.0","id":{json.dumps(ident)},"result":'
        stdio.write(f"{head}{arguments['result']}}}\n".encode())

    def tool_fail(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        error(ident, arguments["code"], arguments["message"], arguments.get("data"))

    def tool_pid(self, ident: Any, arguments: Any, params: Any) -> None:
        text(ident, os.getpid())

    def tool_env(self, ident: Any, arguments: Any, params: Any) -> None:
        text(ident, dict(os.environ))

    def tool_cwd(self, ident: Any, arguments: Any, params: Any) -> None:
        # `here` is written last, so that a directory that is not ours fails the call.
        text(ident, {"cwd": os.getcwd(), "mode": os.stat(".").st_mode & 0o7777})  # noqa: PTH109, PTH116

    def tool_counter(self, ident: Any, arguments: Any, params: Any) -> None:
        self.counter += 1
        text(ident, self.counter)

    def tool_state(self, ident: Any, arguments: Any, params: Any) -> None:
        """What this process has seen so far."""
        found = {
            "seen": self.seen,
            "level": self.level,
            "subscribed": sorted(self.subscribed),
            "cancelled": self.cancelled,
            "waiting": sorted(self.waiting.values()),
            "numbers": list(self.waiting),
            "initialize": self.initialized,
        }
        text(ident, found)

    def tool_wait(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        """Never answers; `state` tells whether it was cancelled."""
        self.waiting[ident] = str(arguments["tag"])

    def tool_release(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        """Answer the `wait` calls with this tag, then this one."""
        for waiting in [i for i, tag in self.waiting.items() if tag == str(arguments["tag"])]:
            text(waiting, self.waiting.pop(waiting))
        text(ident, "released")

    def cancel(self, ident: Any) -> None:
        self.cancelled.append(self.waiting.pop(ident, f"unknown {ident!r}"))

    # Notifications

    def tool_progress(self, ident: Any, arguments: dict[str, Any], params: dict[str, Any]) -> None:
        threading.Thread(target=self.progress, args=(ident, arguments, params), daemon=True).start()

    def progress(self, ident: Any, arguments: dict[str, Any], params: dict[str, Any]) -> None:
        token = params.get("_meta", {}).get("progressToken")
        steps = int(arguments.get("steps", 3))
        waits = arguments.get("then") == "wait"
        if waits:  # before anybody is told, who may release it at once
            self.waiting[ident] = str(arguments["nonce"])
        for step in range(1, steps + 1):
            time.sleep(float(arguments.get("delay", 0)))
            value = {"progressToken": token, "progress": step, "message": arguments.get("nonce")}
            notify("notifications/progress", value)
        if not waits:
            text(ident, arguments.get("nonce", "done"))

    def tool_flood(self, ident: Any, arguments: dict[str, Any], params: dict[str, Any]) -> None:
        """Many notifications of some kinds, as fast as they are taken, then the answer."""
        told = {
            "progress": ("notifications/progress", {"progress": 1}),
            "log": ("notifications/message", {"level": "info"}),
            "updated": ("notifications/resources/updated", {"uri": arguments.get("uri")}),
            "list": ("notifications/tools/list_changed", {}),
        }
        method, values = told[arguments["kind"]]
        if arguments["kind"] == "progress":
            values["progressToken"] = params["_meta"]["progressToken"]
        elif arguments["kind"] == "log":
            values["data"] = "x" * 1000
        values["pad"] = "x" * arguments.get("pad", 0)
        line = stdio.encode({"jsonrpc": "2.0", "method": method, "params": self.flooded(values)})
        at_once = min(100, int(arguments["count"]))
        for _ in range(int(arguments["count"]) // at_once):
            stdio.write(line * at_once)
        text(ident, "flooded")

    def flooded(self, values: dict[str, Any]) -> dict[str, Any]:
        return values

    def tool_late_progress(self, ident: Any, arguments: Any, params: dict[str, Any]) -> None:
        token = params["_meta"]["progressToken"]
        text(ident, "done")
        notify("notifications/progress", {"progressToken": token, "progress": 9})

    def tool_stray_progress(self, ident: Any, arguments: Any, params: Any) -> None:
        for token in ("zzz", 0, 1, 2, 3):
            notify("notifications/progress", {"progressToken": token, "progress": 1})
        text(ident, "done")

    def tool_list_changed(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        self.more_tools = [arguments["tool"]]
        notify("notifications/tools/list_changed")
        text(ident, "changed")

    def tool_log(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        notify("notifications/message", {"level": "info", "data": arguments["data"]})
        text(ident, "logged")

    def tool_touch(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        if arguments["uri"] in self.subscribed:
            notify("notifications/resources/updated", {"uri": arguments["uri"]})
        text(ident, sorted(self.subscribed))

    def tool_custom(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        notify(arguments["method"], arguments.get("params"))
        text(ident, "sent")

    # Requests to the client

    def tool_ask(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        """Send a request to the client and return its answer."""
        event, answer = threading.Event(), []
        own = f"ask-{ident}"
        self.asked[own] = (event, answer)
        asked = arguments.get("params", {})
        stdio.send({"id": own, "method": arguments["method"], "params": asked})

        def wait() -> None:
            event.wait(timeout=10)
            text(ident, answer[0] if answer else None)

        threading.Thread(target=wait, daemon=True).start()

    def tool_ask_many(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        """Ask as often as wanted at once; the result counts how many answers were which."""
        asked, kinds = int(arguments["count"]), Counter[str]()
        all_in = threading.Event()

        class Told:
            def append(self, answer: dict[str, Any]) -> None:
                kinds[next(iter(answer))] += 1

            def set(self) -> None:
                if kinds.total() == asked:
                    all_in.set()

        told: Any = Told()
        for number in range(asked):
            own = f"many-{ident}-{number}"
            self.asked[own] = (told, told)
            question = {"message": str(number) + "x" * int(arguments.get("size", 0))}
            stdio.send({"id": own, "method": "elicitation/create", "params": question})

        def wait() -> None:
            all_in.wait(timeout=10)
            text(ident, kinds)

        threading.Thread(target=wait, daemon=True).start()

    def answered(self, message: dict[str, Any]) -> None:
        if message.get("id") in self.asked:
            event, answer = self.asked.pop(message["id"])
            answer.append({k: v for k, v in message.items() if k in ("result", "error")})
            event.set()

    # Misbehaviour

    def tool_crash(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        after(float(arguments.get("delay", 0)), os._exit, int(arguments.get("status", 1)))

    def tool_kill(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        os.kill(os.getpid(), signal.Signals[arguments.get("signal", "SIGKILL")])

    def tool_close_stdout(self, ident: Any, arguments: Any, params: Any) -> None:
        os.close(1)

    def tool_close_stdin(self, ident: Any, arguments: Any, params: Any) -> None:
        os.close(0)
        while True:
            signal.pause()

    def tool_say(self, ident: Any, arguments: Any, params: Any) -> None:
        stdio.write(arguments["line"].encode() + b"\n")
        text(ident, "said")

    def tool_noise(self, ident: Any, arguments: Any, params: Any) -> None:
        stdio.write(b'Server started\n\n   \n[1,2]\n123\nnull\n"text"\n{}\n{"a":1}\n{"id":\n[]\n')
        text(ident, "after noise")

    def tool_bytewise(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        content = [{"type": "text", "text": arguments["text"]}]
        answer = {"jsonrpc": "2.0", "id": ident, "result": {"content": content}}
        for byte in stdio.encode(answer):
            os.write(1, bytes([byte]))

    def tool_crlf(self, ident: Any, arguments: Any, params: Any) -> None:
        content = [{"type": "text", "text": "after CRLF"}]
        answer = {"jsonrpc": "2.0", "id": ident, "result": {"content": content}}
        stdio.write(stdio.encode(answer)[:-1] + b"\r\n")

    def tool_bad_utf8(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        """An answer that is no UTF-8: as this call's own, or before it."""
        number = json.dumps(ident if arguments.get("own") else "nobody").encode()
        content = b'{"content":[{"type":"text","text":"\xff"}]}'
        stdio.write(b'{"jsonrpc":"2.0","id":' + number + b',"result":' + content + b"}\n")
        if not arguments.get("own"):
            text(ident, "after bad bytes")

    def tool_bad_answer(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        """A line that begins like this call's answer and then is no JSON."""
        stdio.write(b'{"jsonrpc":"2.0","id":' + json.dumps(ident).encode() + b',"result":{"a":}}\n')

    def tool_twice(self, ident: Any, arguments: Any, params: Any) -> None:
        text(ident, "first")
        text(ident, "second")

    def tool_warn(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        os.write(2, arguments["text"].encode() + b"\n")
        text(ident, "warned")

    def tool_stderr(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        filler = b"e" * 99 + (b"\n" if arguments.get("lines", True) else b"e")
        for _ in range(int(arguments["size"]) // len(filler)):
            os.write(2, filler)
        text(ident, "after stderr")


def options_of() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", default="")
    parser.add_argument("--page", type=int, default=0)
    parser.add_argument("--start", type=float, default=0)
    parser.add_argument("--starts")
    return parser


def main() -> None:
    options = options_of().parse_args()
    if options.starts:
        with open(options.starts, "a", encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs start time
            file.write(f"{os.getpid()}\n")
    server = Server(options)
    for message in stdio.messages():
        server.handle(message)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
