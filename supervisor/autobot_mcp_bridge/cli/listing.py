"""`mcp-bridge list`: the configured servers, and what the running proxy knows of them."""

import argparse
from typing import Any

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import Subparsers, note, places_of, print_json, print_table
from autobot_mcp_bridge.config.edit import show
from autobot_mcp_bridge.config.errors import DataError, DeniedError
from autobot_mcp_bridge.config.load import load
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State

_HEAD = ("NAME", "STATE", "PID", "SESSIONS", "CRASHES", "PATH", "DETAIL")
NOT_RUNNING = "-"  # the state where no proxy runs


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("list", help="show the servers and their state")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    loaded = load(places)
    live = _live(places)
    rows = [_row(spec, (live or {}).pop(spec.instance, {})) for spec in loaded.servers]
    # What the proxy still serves although the files no longer say so (a broken file, a removal).
    rows += [_from_proxy(found) for found in (live or {}).values()]
    if args.json:
        problems = [problem.as_data() for problem in loaded.problems]
        print_json({"running": live is not None, "servers": rows, "problems": problems})
    else:
        print_table(_HEAD, [[_cell(row[key.lower()]) for key in _HEAD] for row in rows])
        if live is None:
            note("no proxy runs")
        if loaded.problems:
            note(f"the configuration has mistakes:\n{show(loaded.problems)}")
    return DataError.exit_code if loaded.problems else 0


def _live(places: Places) -> dict[str, dict[str, Any]] | None:
    try:
        found = control.status(places)
    except DeniedError as error:
        note(str(error))
        return None
    if found is None:
        return None
    return {row["instance"]: row for row in found.get("servers", ())}


def _row(spec: ServerSpec, live: dict[str, Any]) -> dict[str, Any]:
    configured = NOT_RUNNING if spec.enabled else State.DISABLED.value
    return {
        "name": spec.instance,
        "state": live.get("state", configured),
        "pid": live.get("pid"),
        "sessions": live.get("sessions"),
        "crashes": live.get("crashes"),
        "path": spec.id.path,
        "detail": live.get("detail") or "",
    }


def _from_proxy(live: dict[str, Any]) -> dict[str, Any]:
    row = {key.lower(): live.get(key.lower()) for key in _HEAD}
    return {**row, "name": live["instance"], "detail": live.get("detail") or ""}


def _cell(value: object) -> str:
    return "-" if value is None else str(value)
