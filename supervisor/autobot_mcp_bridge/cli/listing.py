"""`mcp-bridge list`: the configured servers, and what the running proxy knows of them."""

import argparse
import shutil
import sys
from collections.abc import Iterable
from typing import Any

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import Subparsers, note, places_of, print_json, print_table
from autobot_mcp_bridge.cli.sandbox import brief, in_force
from autobot_mcp_bridge.cli.shown import show_bytes
from autobot_mcp_bridge.cli.usage import Usage, usage_of
from autobot_mcp_bridge.config import disk
from autobot_mcp_bridge.config.edit import show
from autobot_mcp_bridge.config.errors import DataError, DeniedError
from autobot_mcp_bridge.config.load import load
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State

_HEAD = ("NAME", "STATE", "PID", "SESSIONS", "CRASHES", "PATH", "DETAIL")
_FIXED = 5  # columns before those whose length nobody knows
# Where they can be told: memory of what runs, the disk as root's hourly gc has measured it.
_BYTES = ("MEMORY", "DISK", "CACHE")
_SANDBOX = ("PROFILE", "NETWORK")
_LEAST_FOR_SANDBOX = 120  # characters of a terminal that shows these columns, too
NOT_RUNNING = "-"  # the state where no proxy runs
PENDING = "pending"  # it stands in the files, and the proxy does not know it yet


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("list", help="show the servers and their state")
    parser.add_argument(
        "--wide",
        action="store_true",
        help="with memory, what state and cache take of the disk, profile and network",
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    loaded = load(places)
    found = _status(places)
    live = {row["instance"]: row for row in (found or {}).get("servers", ())}
    absent = NOT_RUNNING if found is None else PENDING
    rows = [_row(spec, live.pop(spec.instance, {}), absent) for spec in loaded.servers]
    # What the proxy still serves although the files no longer say so (a broken file, a removal).
    rows += [_from_proxy(served) for served in live.values()]
    if args.wide:
        _widen(rows, found, places)
    told = {str(problem) for problem in loaded.problems}
    # What only apply can know, such as a path that is not there.
    refused = [text for text in (found or {}).get("problems", ()) if text not in told]
    if args.json:
        problems = [problem.as_data() for problem in loaded.problems]
        url = (found or {}).get("url")
        document = {
            "running": found is not None,
            "url": url,
            "servers": rows,
            "problems": problems,
        }
        print_json({**document, "refused": refused})
    else:
        room = _room()
        fits = room is None or room >= _LEAST_FOR_SANDBOX
        more = (*_BYTES, *(_SANDBOX if fits else ())) if args.wide else ()
        head = (*_HEAD[:_FIXED], *more, *_HEAD[_FIXED:])
        print_table(head, (_cells(row, head) for row in rows), columns=room)
        if found is None:
            note("no proxy runs")
        if loaded.problems:
            note(f"the configuration has mistakes:\n{show(loaded.problems)}")
        elif refused:
            note("\n".join(("the configuration is not in force:", *refused)))
    return DataError.exit_code if loaded.problems else 0


def _status(places: Places) -> dict[str, Any] | None:
    try:
        return control.status(places)
    except DeniedError as error:
        note(str(error))
        return None


def _row(spec: ServerSpec, live: dict[str, Any], absent: str) -> dict[str, Any]:
    configured = absent if spec.enabled else State.DISABLED.value
    return {
        "name": spec.instance,
        "state": live.get("state", configured),
        "pid": live.get("pid"),
        "sessions": live.get("sessions"),
        "crashes": live.get("crashes"),
        "path": spec.id.path,
        "detail": live.get("detail") or "",
        "refused": live.get("refused"),
    }


def _from_proxy(live: dict[str, Any]) -> dict[str, Any]:
    row = {key.lower(): live.get(key.lower()) for key in _HEAD}
    told = {"detail": live.get("detail") or "", "refused": live.get("refused")}
    return {**row, "name": live["instance"], **told}


def _widen(rows: list[dict[str, Any]], found: dict[str, Any] | None, places: Places) -> None:
    """Add bytes of memory and disk, profile and network, None for what is not known."""
    live = found or {"servers": (), "runtime": ""}
    measured, specs = disk.read(places.disk), in_force(places)
    used = usage_of(live["servers"], live["runtime"])
    for row in rows:
        name = row["name"]
        sizes = measured.servers.get(name, {})
        row["memory"] = used.get(name, Usage()).memory
        row["disk"], row["cache"] = sizes.get("state"), sizes.get("cache")
        served = specs.get(name)
        row.update({"profile": None, "network": None} if served is None else brief(served))


def _cells(row: dict[str, Any], head: Iterable[str]) -> list[str]:
    # How one that is ready ended before is told by `status`.
    detail = "" if row["state"] == State.READY else row["detail"]
    if row["refused"]:
        detail = f"its definition is not in force: {row['refused']}"
    shown = {**row, "detail": detail}
    return [_cell(key, shown[key.lower()]) for key in head]


def _cell(key: str, value: Any) -> str:
    if key in _BYTES:
        return show_bytes(value)
    return "-" if value is None else str(value)


def _room() -> int | None:
    """The width of the table for people; `status` has the whole sentence."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
