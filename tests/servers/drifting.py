"""A fake whose tools stand in a file, read at each tools/list: what a test writes there, it lists.

    drifting.py FILE [--era legacy|modern] [--own LOG] [--slow SECONDS]

Each line of the file is the result of one page, as bytes: what is written there is what is sent.
The cursor is the number of the line. --own appends a line for each message that it gets, --slow is
how long a list takes. Every tool can be called; `announce` says that the tools have changed.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import stdio
from stdio import after, error, notify, text

META = "io.modelcontextprotocol/"
VERSION = "2026-07-28"
CAPABILITIES = {"tools": {"listChanged": True}}


class Drifting:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.listening: set[Any] = set()  # ids of subscriptions, at 2026-07-28

    def handle(self, message: dict[str, Any]) -> None:
        if self.options.own:
            with self.options.own.open("a", encoding="utf-8") as file:
                file.write(f"{message.get('method')}\n")
        ident, params = message.get("id"), message.get("params") or {}
        if ident is None:
            self.listening.discard(params.get("requestId"))
            return
        match message.get("method"):
            case "initialize" if self.options.era == "legacy":
                stdio.result(ident, stdio.initialize_result(message, CAPABILITIES))
            case "server/discover" if self.options.era == "modern":
                found = {"supportedVersions": [VERSION], "capabilities": CAPABILITIES}
                info = {"name": "fake", "version": "1.0.0"}
                stdio.result(ident, {**found, "_meta": {META + "serverInfo": info}})
            case "tools/list":
                self.list(ident, params.get("cursor"))
            case "tools/call":
                if params.get("name") == "announce":
                    self.announce()
                text(ident, f"called {params.get('name')}")
            case "subscriptions/listen":
                self.listening.add(ident)
                told = {"_meta": {META + "subscriptionId": ident}, **params["notifications"]}
                notify("notifications/subscriptions/acknowledged", told)
            case method:
                error(ident, -32601, f"method not found: {method}")

    def announce(self) -> None:
        for number in self.listening:
            told = {"_meta": {META + "subscriptionId": number}}
            notify("notifications/tools/list_changed", told)
        if self.options.era == "legacy":
            notify("notifications/tools/list_changed")

    def list(self, ident: Any, cursor: str | None) -> None:
        result = self.options.file.read_text(encoding="utf-8").splitlines()[int(cursor or 0)]
        if self.options.era == "modern":
            result = '{"resultType":"complete",' + result.lstrip()[1:]
        line = f'{{"jsonrpc":"2.0","id":{json.dumps(ident)},"result":{result}}}\n'
        after(self.options.slow, stdio.write, line.encode())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--era", choices=("legacy", "modern"), default="legacy")
    parser.add_argument("--own", type=Path)
    parser.add_argument("--slow", type=float, default=0)
    server = Drifting(parser.parse_args())
    for message in stdio.messages():
        server.handle(message)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
