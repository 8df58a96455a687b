"""`mcp-bridge logs NAME`: a server's lines in the journal, and the proxy's about it."""

import argparse
import os
import shutil

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import Subparsers, not_served, places_of, server_of
from autobot_mcp_bridge.config.errors import UnavailableError


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "logs",
        help="show what a server and the proxy have logged",
        epilog="The same by hand: journalctl MCP_INSTANCE=NAME (never -u mcp-bridge@NAME: the "
        "journal does not know the alias).",
    )
    parser.add_argument("name", metavar="NAME", help="the whole name: files is not acme.files")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as lines come")
    parser.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="default: 50")
    parser.add_argument("--since", metavar="TIME", help="as journalctl reads it")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    server, places = server_of(args.name), places_of(args)
    found = control.status(places)
    if found is not None and found["runtime"] != "systemd":
        raise UnavailableError(
            "without systemd the proxy writes its servers' lines to its own stderr"
        )
    if found is not None and all(row["instance"] != server.instance for row in found["servers"]):
        raise not_served(places, server)
    program = shutil.which("journalctl")
    if program is None:
        raise UnavailableError("journalctl is not there: is this a systemd host?")
    words = [program, "--no-pager", f"--lines={args.lines}"]
    words += ["--output=json"] if args.json else []
    words += ["--follow"] if args.follow else []
    words += [f"--since={args.since}"] if args.since else []
    os.execv(program, [*words, f"MCP_INSTANCE={server.instance}"])
