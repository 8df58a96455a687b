"""`mcp-bridge reload`: the proxy reads its files by itself; this waits until it has."""

import argparse

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import Subparsers, note, places_of
from autobot_mcp_bridge.config.errors import LEFT_OUT, DataError


def add_parser(subparsers: Subparsers) -> None:
    subparsers.add_parser("reload", help="read the configuration again now")


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    answer = control.reload(places)
    if problems := answer.get("problems"):
        for problem in problems:
            note(str(problem))
        note("the last good configuration stays in force")
        return DataError.exit_code
    left = {row["instance"]: row["refused"] for row in answer["servers"] if row["refused"]}
    note("the configuration is in force" + (", but for" if left else ""))
    for instance, why in left.items():
        note(f"{instance}: {why}")
    if answer.get("restart_wanted"):
        note("but for host.toml, which has changed: it counts when the proxy is restarted")
    return LEFT_OUT if left else 0
