"""`mcp-bridge status NAME`: everything about one server, and what to type next."""

import argparse
from typing import Any

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import (
    Subparsers,
    not_served,
    places_of,
    print_json,
    printable,
    server_of,
)
from autobot_mcp_bridge.cli.sandbox import Sandbox, in_force, lines_of, sandbox_of
from autobot_mcp_bridge.cli.shown import show_bytes, show_seconds
from autobot_mcp_bridge.cli.usage import Usage, usage_of
from autobot_mcp_bridge.config.errors import UnavailableError
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.units.instances import service_of


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("status", help="show everything about one server")
    parser.add_argument("name", metavar="NAME", help="the whole name: files is not acme.files")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    server, places = server_of(args.name), places_of(args)
    found = control.status(places)
    if found is None:
        raise UnavailableError(f"no proxy answers at {places.control_socket}")
    rows = [row for row in found["servers"] if row["instance"] == server.instance]
    if not rows:
        raise not_served(places, server)
    row = rows[0]
    used = usage_of(rows, found["runtime"]).get(server.instance, Usage())
    units = found["runtime"] == "systemd"
    served = in_force(places).get(server.instance)
    sandbox = None if served is None else sandbox_of(served, places, units=units)
    if args.json:
        print_json({**row, "memory": used.memory, "cpu": used.cpu, "sandbox": sandbox})
        return 0
    lines = _lines(row, used, found["runtime"], sandbox)
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        print(f"{name.ljust(width)}  {printable(text)}")
    return 0


def _lines(
    row: dict[str, Any], used: Usage, runtime: str, sandbox: Sandbox | None
) -> list[tuple[str, str]]:
    instance, death = row["instance"], row["last_death"] or {}
    lines = [("server", instance), ("path", row["path"]), ("state", row["state"])]
    if row["detail"]:
        # Of one that serves again it is only history.
        name = "last end" if row["state"] == State.READY else "because"
        lines.append((name, row["detail"]))
    if row["refused"] and row["state"] != State.REFUSED:
        lines.append(("not in force", f"what the files say: {row['refused']}"))
    if runtime == "systemd":
        lines.append(("unit", service_of(instance)))
    if row["pid"] is not None:
        lines += [
            ("pid", str(row["pid"])),
            ("up", show_seconds(row["uptime"])),
            ("memory", show_bytes(used.memory)),
            ("cpu", show_seconds(used.cpu)),
            ("idle in", show_seconds(row["idle_in"], none="never")),
        ]
    breaker = row["breaker"]
    if row["retry_after"]:
        breaker += f", a start is tried in {show_seconds(row['retry_after'])}"
    how = f", {sandbox['sessions']}" if sandbox is not None else ""
    lines += [
        ("sessions", f"{row['sessions']}{how}"),
        ("calls", f"{row['calls']}, {row['failed']} failed, {row['open_calls']} open"),
        ("starts", f"{row['starts']}, {row['crashes']} crashes"),
        ("breaker", breaker),
    ]
    if (tools := row["tools"])["new"] + tools["changed"]:
        held = "held back" if tools["drift"] == "hold" else "not accepted"
        lines.append(("tools", f"{tools['new']} new, {tools['changed']} changed, {held}"))
    if sandbox is not None:
        lines += lines_of(sandbox, units=runtime == "systemd")
    last = death.get("stderr", [])[-5:]
    lines += [("" if number else "last said", text) for number, text in enumerate(last)]
    return [*lines, ("next", next_step(row, runtime))]


def next_step(row: dict[str, Any], runtime: str) -> str:
    """What an operator most likely wants to type now."""
    instance: str = row["instance"]
    match State(row["state"]):
        case State.STOPPED:
            return f"mcp-bridge start {instance}"
        case State.SLEEPING if row["last_death"]:
            return f"mcp-bridge doctor {instance}; mcp-bridge logs {instance}"
        case State.BROKEN:
            return f"mcp-bridge doctor {instance}; then mcp-bridge reset {instance}"
        case State.INSTALL_FAILED:
            again = "apply" if runtime == "systemd" else "reload"
            return f"mend what is said above, then mcp-bridge {again}"
        case State.CREDENTIAL_MISSING:
            return "mend what is said above"
        case State.REFUSED:
            again = "apply" if runtime == "systemd" else "reload"
            return f"mend what is said above, then mcp-bridge {again}"
        case State.INSTALLING:
            return "wait; the next call may be answered"
        case State.DISABLED:
            return f"mcp-bridge enable {instance}"
        case State.MASKED:
            return f"systemctl unmask {service_of(instance)}"
        case _:
            if row["tools"]["new"] + row["tools"]["changed"]:
                return f"mcp-bridge tools {instance}"
            return f"mcp-bridge logs {instance}"
