"""`mcp-bridge start NAME`, `stop NAME` and `reset NAME`, by way of the running proxy."""

import argparse

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import (
    Subparsers,
    add_json,
    note,
    places_of,
    print_json,
    server_of,
)

_TEXTS = {
    "start": "start a server now",
    "stop": "stop a server until it is started again",
    "reset": "forget a server's crashes and close its breaker",
}
_DONE = {"start": "is being started", "stop": "is being stopped", "reset": "is reset"}


def add_parser(subparsers: Subparsers) -> None:
    for verb, text in _TEXTS.items():
        parser = subparsers.add_parser(verb, help=text)
        parser.add_argument("name", metavar="NAME", help="the whole name: files is not acme.files")
        add_json(parser)


def run(args: argparse.Namespace) -> int:
    server = server_of(args.name)
    control.operate(places_of(args), server.instance, args.command)
    if args.json:
        print_json({"server": server.instance, "asked": args.command})
        return 0
    note(f"{server} {_DONE[args.command]}; `mcp-bridge list` shows its state")
    return 0
