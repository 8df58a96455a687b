"""`mcp-bridge top`: the running servers, those that use most first, again and again."""

import argparse
import sys
import time
from typing import Any

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import Subparsers, duration, places_of, print_json, print_table
from autobot_mcp_bridge.cli.shown import show_bytes, show_seconds
from autobot_mcp_bridge.cli.usage import Usage, usage_of
from autobot_mcp_bridge.config.errors import UnavailableError
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.errors import UsageError

HEAD = ("NAME", "STATE", "PID", "CPU", "MEMORY", "UP", "CALLS/S", "OPEN", "SESSIONS")
_CLEAR = "\x1b[H\x1b[J"  # only where people look


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("top", help="show what the running servers use")
    parser.add_argument("--every", type=duration, default=2.0, metavar="TIME", help="default: 2s")
    parser.add_argument("--once", action="store_true", help="one look, measured over --every")
    parser.add_argument("--json", action="store_true", help="one look, for programs")


def run(args: argparse.Namespace) -> int:
    if not args.every > 0:
        raise UsageError("--every: allowed is more than 0")
    places = places_of(args)
    before = _look(places)
    while True:
        time.sleep(args.every)
        now = _look(places)
        rows = _rows(before, now)
        if args.json:
            print_json(rows)
        else:
            if not args.once and sys.stdout.isatty():
                print(_CLEAR, end="")
            print_table(HEAD, map(_cells, rows))
            sys.stdout.flush()  # a pipe would hold it back
        if args.once or args.json:
            return 0
        before = now


_Look = tuple[float, list[dict[str, Any]], dict[str, Usage]]


def _look(places: Places) -> _Look:
    found = control.status(places)
    if found is None:
        raise UnavailableError(f"no proxy answers at {places.control_socket}")
    return time.monotonic(), found["servers"], usage_of(found["servers"], found["runtime"])


def _rows(before: _Look, now: _Look) -> list[dict[str, Any]]:
    then, old_rows, old_use = before
    at, new_rows, use = now
    passed = at - then
    calls = {row["instance"]: row["calls"] for row in old_rows}
    rows = []
    for row in new_rows:
        if row["pid"] is None:
            continue
        instance = row["instance"]
        used, was = use.get(instance, Usage()), old_use.get(instance, Usage())
        cpu = None
        if used.cpu is not None and was.cpu is not None and used.cpu >= was.cpu:
            cpu = round((used.cpu - was.cpu) / passed, 3)  # of one processor
        rate = round((row["calls"] - calls.get(instance, 0)) / passed, 1)
        rows.append({**row, "cpu": cpu, "memory": used.memory, "calls_per_second": rate})
    return sorted(rows, key=lambda row: (-(row["cpu"] or 0), -(row["memory"] or 0)))


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        row["instance"],
        row["state"],
        str(row["pid"]),
        "-" if row["cpu"] is None else f"{100 * row['cpu']:.1f}%",
        show_bytes(row["memory"]),
        show_seconds(row["uptime"]),
        str(row["calls_per_second"]),
        str(row["open_calls"]),
        str(row["sessions"]),
    ]
