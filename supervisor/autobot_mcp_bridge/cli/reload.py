"""`mcp-bridge reload`: the proxy reads its files by itself; this waits until it has."""

import argparse

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import Subparsers, add_json, note, places_of, print_json
from autobot_mcp_bridge.config.errors import LEFT_OUT, DataError


def add_parser(subparsers: Subparsers) -> None:
    add_json(subparsers.add_parser("reload", help="read the configuration again now"))


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    answer = control.reload(places)
    problems = answer.get("problems") or []
    left = {row["instance"]: row["refused"] for row in answer.get("servers", ()) if row["refused"]}
    status = DataError.exit_code if problems else LEFT_OUT if left else 0
    if args.json:
        restart = bool(answer.get("restart_wanted"))
        told = {"in_force": not problems, "problems": problems, "left_out": left}
        print_json({**told, "restart_wanted": restart})
        return status
    if problems:
        for problem in problems:
            note(str(problem))
        note("the last good configuration stays in force")
        return status
    note("the configuration is in force" + (", but for" if left else ""))
    for instance, why in left.items():
        note(f"{instance}: {why}")
    if answer.get("restart_wanted"):
        note("but for host.toml, which has changed: it counts when the proxy is restarted")
    return status
