"""`mcp-bridge enable NAME` and `disable NAME`."""

import argparse

from autobot_mcp_bridge.cli import in_force
from autobot_mcp_bridge.cli.common import (
    Subparsers,
    add_json,
    note,
    places_of,
    print_json,
    server_of,
)
from autobot_mcp_bridge.config import edit


def add_parser(subparsers: Subparsers) -> None:
    for verb, text in (
        ("enable", "let a server be served"),
        ("disable", "let a server not be served; its tokens and data stay"),
    ):
        parser = subparsers.add_parser(verb, help=text)
        parser.add_argument("name", metavar="NAME", help="the whole name: files is not acme.files")
        add_json(parser)


def run(args: argparse.Namespace) -> int:
    server, places = server_of(args.name), places_of(args)
    edited = edit.enable(places, server, enabled=args.command == "enable")
    if args.json:
        told = {"server": server.instance, "changed": edited.changed, "file": str(edited.file)}
        print_json({**told, "enabled": args.command == "enable"})
    elif edited.changed:
        note(f"{server} is {args.command}d in {edited.file}")
    else:
        note(f"{server} was {args.command}d already")
    if args.command == "enable":
        return in_force.say(server, in_force.wait(places, server, in_force.is_served))
    in_force.wait(places, server, in_force.is_disabled)
    return 0
