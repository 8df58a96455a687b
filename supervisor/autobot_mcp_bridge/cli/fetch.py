"""`mcp-bridge fetch [NAME…]`: install the packages of the configured servers, in the foreground."""

import argparse
import asyncio
import os
from collections.abc import Sequence

from autobot_mcp_bridge.cli.common import Subparsers, note, places_of
from autobot_mcp_bridge.cli.packaged import chosen, loaded_of
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.errors import CallError
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.packages.commands import Packages

FAILED = 1


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "fetch",
        help="install the packages of the configured servers",
        epilog="Installs run with the whole environment of this command; servers never see it.",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="only these servers")


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    loaded = loaded_of(places)
    return asyncio.run(_fetch(places, chosen(loaded, args.names) or loaded.enabled))


async def _fetch(places: Places, specs: Sequence[ServerSpec]) -> int:
    packages = Packages(places.packages, environ=os.environ, progress=_say)
    try:
        await packages.ensure(specs)
        await packages.settled()
    finally:
        await packages.close()
    failed = False
    for spec in specs:
        try:
            packages.command(spec)
        except CallError as error:
            failed = True
            note(str(error))
        else:
            _say(f"{spec.instance}: ready")
    return FAILED if failed else 0


def _say(line: str) -> None:
    print(line, flush=True)
