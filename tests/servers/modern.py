"""The well-behaved fake in the era of 2026-07-28 alone, with what misbehaves in that era only.

    modern.py [--listen well|refuse|end|silent] [options of echo.py]

--listen tells how it takes subscriptions/listen: as it should; with an error; with a result at
once; not at all.
"""

import sys
from typing import Any

import stdio
from echo import CAPABILITIES, Server, options_of
from stdio import error, notify, text

META = "io.modelcontextprotocol/"
VERSION = "2026-07-28"
INFO = {"name": "fake", "version": "1.0.0"}
LISTEN = ("well", "refuse", "end", "silent")


class Modern(Server):
    listening: dict[Any, dict[str, Any]]

    def do_initialize(self, message: dict[str, Any], ident: Any, params: dict[str, Any]) -> None:
        told = {"supported": [VERSION], "requested": params.get("protocolVersion")}
        error(ident, -32022, "Unsupported protocol version", told)

    def do_server_discover(self, message: Any, ident: Any, params: Any) -> None:
        found = {"supportedVersions": [VERSION], "capabilities": CAPABILITIES}
        stdio.result(ident, {**found, "_meta": {META + "serverInfo": INFO}})

    # Subscriptions

    def do_subscriptions_listen(self, message: Any, ident: Any, params: dict[str, Any]) -> None:
        match self.options.listen:
            case "refuse":
                error(ident, -32603, "no")
            case "end":
                stdio.result(ident, {"_meta": {META + "subscriptionId": ident}})
            case "well":
                wanted = params["notifications"]
                self.listening[ident] = wanted
                meta = {META + "subscriptionId": ident}
                told = {"_meta": meta, "notifications": wanted}
                notify("notifications/subscriptions/acknowledged", told)

    def cancel(self, ident: Any) -> None:
        if self.listening.pop(ident, None) is None:
            super().cancel(ident)

    def tool_touch(self, ident: Any, arguments: dict[str, Any], params: Any) -> None:
        for number, wanted in list(self.listening.items()):
            if arguments["uri"] in wanted.get("resourceSubscriptions", []):
                meta = {META + "subscriptionId": number}
                told = {"uri": arguments["uri"], "_meta": meta}
                notify("notifications/resources/updated", told)
        text(ident, "touched")

    def tool_listening(self, ident: Any, arguments: Any, params: Any) -> None:
        """What is told now, and how often it was asked for that."""
        found = {"listening": list(self.listening.values()), "seen": self.seen}
        text(ident, found)

    def flooded(self, values: dict[str, Any]) -> dict[str, Any]:
        """A change is told of the first subscription, or of one that there is not."""
        if "uri" not in values:
            return values
        number = 12345 if values["uri"] == "foreign:///" else next(iter(self.listening))
        return {**values, "_meta": {META + "subscriptionId": number}}

    # Questions

    def tool_ask(self, ident: Any, arguments: dict[str, Any], params: dict[str, Any]) -> None:
        """Ask the client for as many rounds as wanted, and return its last answer."""
        answers = params.get("inputResponses")
        done = int(params.get("requestState", "0"))
        if answers is not None and done >= int(arguments.get("rounds", 1)):
            text(ident, answers["question"])
            return
        asked = {"method": arguments["method"], "params": arguments.get("params", {})}
        told = {"inputRequests": {"question": asked}, "requestState": str(done + 1)}
        stdio.result(ident, {"resultType": "input_required", **told})

    def tool_forever(self, ident: Any, arguments: Any, params: dict[str, Any]) -> None:
        """Ask nothing, again and again."""
        self.counter += 1
        told = {"resultType": "input_required", "requestState": str(self.counter)}
        stdio.result(ident, told)


def main() -> None:
    parser = options_of()
    parser.add_argument("--listen", choices=LISTEN, default="well")
    server = Modern(parser.parse_args())
    server.listening = {}
    stdio.members["resultType"] = "complete"
    for message in stdio.messages():
        server.handle(message)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
