"""`mcp-bridge doctor NAME`: why a server does not start, and what would let it."""

import argparse
import asyncio
import os
import sys

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import (
    Subparsers,
    duration,
    known_server,
    places_of,
    print_json,
    printable,
    server_of,
)
from autobot_mcp_bridge.config.errors import DeniedError
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.diagnosis.doctor import examine
from autobot_mcp_bridge.diagnosis.verdict import Report
from autobot_mcp_bridge.model.errors import BridgeError
from autobot_mcp_bridge.model.names import ServerId
from autobot_mcp_bridge.units.bindings import bus_manager
from autobot_mcp_bridge.units.manager import SystemctlManager
from autobot_mcp_bridge.units.systemctl import has_systemd

DEADLINE = "2m"
FOUND = 1  # a cause was found; 0: the server is healthy
_TERMINATED = 143  # as a shell says of SIGTERM


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="find out why a server does not start",
        epilog="Starts the server once more beside the running one, as its own user, and where it "
        "fails again with one part of its sandbox relaxed after the other. Exit status: 0 it "
        "starts, 1 the cause is in the first line.",
    )
    parser.add_argument("name", metavar="NAME", help="the whole name: files is not acme.files")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="relax nothing: for a server that may not be without its sandbox for a second",
    )
    parser.add_argument(
        "--deadline", type=duration, default=DEADLINE, metavar="TIME", help=f"default: {DEADLINE}"
    )


def run(args: argparse.Namespace) -> int:
    server, places = server_of(args.name), places_of(args)
    known_server(places, server)
    deadline = duration(args.deadline) if isinstance(args.deadline, str) else args.deadline
    try:
        report = asyncio.run(_examined(server, places, deadline, relax=not args.strict))
    except asyncio.CancelledError:
        return _TERMINATED
    if args.json:
        print_json(report.as_data())
    else:
        print("\n".join(map(printable, report.text())))
    return 0 if report.healthy else FOUND


async def _examined(server: ServerId, places: Places, deadline: float, *, relax: bool) -> Report:
    if not (has_systemd() and places.accepted.exists()):
        from autobot_mcp_bridge.diagnosis.plain import examine_plain

        return await examine_plain(server, places, deadline=deadline, tell=_tell)
    if os.geteuid() != 0:
        raise DeniedError("with systemd, doctor makes units: run it as root")
    row = await asyncio.to_thread(_row, places, server)
    return await examine(
        server,
        places,
        bus_manager() or SystemctlManager(),
        row,
        deadline=deadline,
        tell=_tell,
        relax=relax,
    )


def _row(places: Places, server: ServerId) -> dict[str, object] | None:
    try:
        found = control.status(places)
    except BridgeError:
        return None
    rows = found["servers"] if found is not None else ()
    return next((row for row in rows if row["instance"] == server.instance), None)


def _tell(line: str) -> None:
    print(f"mcp-bridge: {printable(line)}", file=sys.stderr, flush=True)
