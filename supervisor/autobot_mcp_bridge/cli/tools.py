"""`mcp-bridge tools [NAME]` and `mcp-bridge tools accept NAME [TOOL…]`."""

import argparse
from typing import Any

from autobot_mcp_bridge.cli import control, digests
from autobot_mcp_bridge.cli.common import (
    Subparsers,
    add_json,
    note,
    places_of,
    print_json,
    print_table,
    printable,
    server_of,
)
from autobot_mcp_bridge.cli.tool_diff import difference
from autobot_mcp_bridge.config.errors import UnavailableError
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.errors import UsageError

ACCEPT = "accept"
STATES = ("accepted", "new", "changed", "gone")
USAGE = """mcp-bridge tools [NAME] [--json]
       mcp-bridge tools accept NAME [TOOL ...] [--seen DIGEST] [--json]"""
ALLOWED = "allowed are `mcp-bridge tools [NAME]` and `mcp-bridge tools accept NAME [TOOL …]`"


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "tools", help="show the tools of servers, and accept changed ones", usage=USAGE
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="the whole name; absent: all")
    parser.add_argument(
        "tools",
        metavar="TOOL",
        nargs="*",
        help="behind `accept NAME`: which to accept; absent: all that are new or changed",
    )
    parser.add_argument(
        "--seen",
        metavar="DIGEST",
        help="accept only if what differs is what `mcp-bridge tools NAME` has shown",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    if args.name == ACCEPT and args.tools:
        server = server_of(args.tools[0]).instance
        return _accept(places, server, args.tools[1:], args)
    if args.tools or args.seen is not None or args.name == ACCEPT:
        raise UsageError(ALLOWED)
    if args.name is None:
        return _all(places, as_json=args.json)
    found = control.tools(places, server_of(args.name).instance)
    if args.json:
        print_json(found)
    else:
        _show(found)
    return 0


def _accept(places: Places, server: str, names: list[str], args: argparse.Namespace) -> int:
    found = control.accept_tools(places, server, names, args.seen)
    if args.json:
        print_json(found)
        return 0
    accepted = found["accepted"]
    note(f"{server}: accepted: {', '.join(accepted)}" if accepted else f"{server}: none differs")
    return 0


def _all(places: Places, *, as_json: bool) -> int:
    found = control.status(places)
    if found is None:
        raise UnavailableError(f"no proxy answers at {places.control_socket}")
    rows = [{"server": row["instance"], **row["tools"]} for row in found["servers"]]
    if as_json:
        print_json({"servers": rows})
        return 0
    columns = ("server", "drift", *STATES)
    head = [column.upper() for column in columns]
    print_table(head, [[str(row[column]) for column in columns] for row in rows])
    return 0


def _show(found: dict[str, Any]) -> None:
    rows = []
    for tool in found["tools"]:
        accepted, differing = tool["accepted"], tool["differing"]
        rows.append((tool["name"], tool["state"], *_when(accepted), *_when(differing)))
    head = ("TOOL", "STATE", "ACCEPTED", "FOR", "DIFFERS SINCE", "IN")
    print_table(head, rows)
    for tool in found["tools"]:
        if tool["differing"] is None:
            continue
        print(f"\n{printable(tool['name'])}: {tool['state']}")
        for line in difference(tool["accepted"], tool["differing"]):
            print(f"  {printable(line)}")
    if found["seal"] is not None:
        what = "are held back" if found["drift"] == "hold" else "differ"
        note(
            f"some tools {what}; once they are looked at: "
            f"mcp-bridge tools accept {found['server']} --seen {found['seal']}"
        )


def _when(seen: dict[str, Any] | None) -> tuple[str, str]:
    """When that descriptor came, and with which version of its package."""
    if seen is None:
        return "-", "-"
    return digests.time_of(seen["at"]) or "-", seen["package"] or "-"
