"""`mcp-bridge check`: every mistake at once, and nothing started."""

import argparse
import os
from collections.abc import Iterator

from autobot_mcp_bridge.cli.common import Subparsers, note, places_of, print_json, printable
from autobot_mcp_bridge.config import refused
from autobot_mcp_bridge.config.errors import DataError, MissingError
from autobot_mcp_bridge.config.load import Loaded, load
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.problem import Problem
from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.runtimes.subprocess.unkept import unkept
from autobot_mcp_bridge.units.apply import Applier
from autobot_mcp_bridge.units.live import weaker
from autobot_mcp_bridge.units.names import reached
from autobot_mcp_bridge.units.systemctl import has_systemd


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("check", help="report every mistake in the configuration")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    if not places.config_dir.is_dir():
        raise MissingError(f"{places.config_dir}: no such directory")
    loaded = load(places)
    problems = (*loaded.problems, *TokenStore(places.tokens_d).scan().problems)
    has_units = places.accepted.exists() and has_systemd()
    if has_units and not problems and os.geteuid() == 0:
        problems = _refusals(places)
    notes = [
        *(() if has_units else _unkept(loaded)),
        *_weaker(loaded),
        *_reached(loaded, has_units),
    ]
    if args.json:
        print_json(
            {
                "ok": not problems,
                "servers": [spec.instance for spec in loaded.servers],
                "problems": [problem.as_data() for problem in problems],
                "notes": notes,
            }
        )
        return DataError.exit_code if problems else 0
    for problem in problems:
        print(printable(str(problem)))
    if problems:
        note(f"{len(problems)} mistake{'s' if len(problems) > 1 else ''} in {places.config_dir}")
        return DataError.exit_code
    for sentence in notes:
        note(sentence)
    off = len(loaded.servers) - len(loaded.enabled)
    right = len(loaded.enabled)
    are = "server is" if right == 1 else "servers are"
    disabled = f", {off} more {'is' if off == 1 else 'are'} disabled" if off else ""
    print(f"{places.config_dir}: {right} {are} right{disabled}")
    return 0


def _refusals(places: Places) -> tuple[Problem, ...]:
    """What apply would refuse: it looks at the host, too, such as for a path that is not there."""
    try:
        Applier(places, say=lambda _line: None).plan()
    except DataError as error:
        return tuple(map(refused.problem, str(error).splitlines()))
    return ()


def _weaker(loaded: Loaded) -> Iterator[str]:
    for spec in loaded.enabled:
        if sentence := weaker(spec):
            yield f"{spec.instance}: {sentence}"


def _reached(loaded: Loaded, has_units: bool) -> Iterator[str]:
    for spec in loaded.enabled if has_units else ():
        if sentence := reached(spec):
            yield f"{spec.instance}: {sentence}"


def _unkept(loaded: Loaded) -> Iterator[str]:
    """What each server asks for and the subprocess runtime cannot keep, once per server."""
    for spec in loaded.enabled:
        if sentences := unkept(spec):
            yield f"{spec.instance}: {'; '.join(sentences)}"
