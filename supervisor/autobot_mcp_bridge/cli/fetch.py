"""`mcp-bridge fetch [NAME…]`: install the packages of the configured servers, in the foreground."""

import argparse
import asyncio
import os
from collections.abc import Callable, Sequence

from autobot_mcp_bridge.cli.common import (
    Subparsers,
    add_json,
    note,
    places_of,
    print_json,
)
from autobot_mcp_bridge.cli.packaged import chosen, loaded_of
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.errors import CallError
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.units.packages.commands import Packages

FAILED = 1


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "fetch",
        help="install the packages of the configured servers",
        epilog="Installs run with the whole environment of this command; servers never see it.",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="only these servers")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    loaded = loaded_of(places)
    specs = chosen(loaded, args.names) or loaded.enabled
    whys = asyncio.run(_fetch(places, specs, note if args.json else _say))
    for spec in specs:
        if why := whys[spec.instance]:
            note(why)
        elif not args.json:
            _say(f"{spec.instance}: ready")
    if args.json:
        print_json({"servers": {name: _as_data(why) for name, why in whys.items()}})
    return FAILED if any(whys.values()) else 0


async def _fetch(
    places: Places, specs: Sequence[ServerSpec], say: Callable[[str], None]
) -> dict[str, str]:
    """Why each server's package is not there; empty: it is."""
    packages = Packages(places.packages, environ=os.environ, progress=say)
    try:
        await packages.ensure(specs)
        await packages.settled()
    finally:
        await packages.close()
    whys = {}
    for spec in specs:
        try:
            packages.command(spec)
            whys[spec.instance] = ""
        except CallError as error:
            whys[spec.instance] = str(error)
    return whys


def _as_data(why: str) -> dict[str, str]:
    return {"state": State.INSTALL_FAILED.value if why else "ready", "why": why}


def _say(line: str) -> None:
    print(line, flush=True)
