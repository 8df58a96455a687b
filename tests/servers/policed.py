"""A server whose tools say everything of themselves, and which counts what reaches it.

policed.py [--pages N]
"""

import argparse
import base64
from collections import Counter
from typing import Any

import stdio
from policed_tools import TOOLS

RESOURCES = ["note:///one", "secret:///one"]
PROMPTS = ["greet", "secret"]


class Server:
    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.seen: Counter[str] = Counter()
        self.called: list[Any] = []

    def handle(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params") or {}
        if method is None or "id" not in message:
            return
        self.seen[method] += 1
        ident = message["id"]
        if method == "initialize":
            capabilities = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}
            stdio.result(ident, stdio.initialize_result(message, capabilities))
        elif method == "tools/list":
            start = int(params.get("cursor") or 0)
            end = start + self.pages if self.pages else len(TOOLS)
            more = {"nextCursor": str(end)} if end < len(TOOLS) else {}
            stdio.result(ident, {"tools": TOOLS[start:end], **more})
        elif method == "tools/call":
            self.call(ident, params)
        elif method == "resources/list":
            found = [{"uri": uri, "name": uri} for uri in RESOURCES]
            stdio.result(ident, {"resources": found})
        elif method == "resources/read":
            stdio.result(ident, {"contents": [{"uri": params["uri"], "text": "some text"}]})
        elif method == "prompts/list":
            stdio.result(ident, {"prompts": [{"name": name} for name in PROMPTS]})
        elif method == "prompts/get":
            content = {"type": "text", "text": params["name"]}
            stdio.result(ident, {"messages": [{"role": "user", "content": content}]})
        elif method == "completion/complete":
            stdio.result(ident, {"completion": {"values": ["x"]}})
        else:
            stdio.error(ident, -32601, f"method not found: {method}")

    def call(self, ident: Any, params: dict[str, Any]) -> None:
        name, arguments = params["name"], params.get("arguments") or {}
        if name == "state":
            stdio.text(ident, {"seen": self.seen, "called": self.called})
        elif name == "wait":
            self.called.append(params)
        elif name == "answer":
            self.answer(ident, arguments)
        else:
            self.called.append(params)
            stdio.text(ident, arguments)

    def answer(self, ident: Any, arguments: dict[str, Any]) -> None:
        """What the arguments say: a result, an error, or a block of so many bytes."""
        if "error" in arguments:
            stdio.error(ident, -32000, arguments["error"], {"also": arguments["error"]})
        elif "bytes" in arguments:
            data = base64.b64encode(b"\xff" * arguments["bytes"]).decode()
            image = {"type": "image", "mimeType": "image/png", "data": data}
            stdio.result(ident, {"content": [{"type": "text", "text": "beside"}, image]})
        else:
            stdio.result(ident, arguments["result"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=0)
    server = Server(parser.parse_args().pages)
    for message in stdio.messages():
        server.handle(message)


if __name__ == "__main__":
    main()
