"""`mcp-bridge egress`: the way out of servers with network mode names; a unit starts it."""

import argparse
import asyncio

from autobot_mcp_bridge.cli import journal
from autobot_mcp_bridge.cli.common import Subparsers, places_of
from autobot_mcp_bridge.egress.service import Files
from autobot_mcp_bridge.egress.service import run as run_egress


def add_parser(subparsers: Subparsers) -> None:
    subparsers.add_parser(
        "egress", help="carry servers' connections to the hosts that they may reach"
    )


def run(args: argparse.Namespace) -> int:
    journal.set_up("mcp-bridge-egress")
    places = places_of(args, adopt_running=False)
    asyncio.run(run_egress(Files(places.egress, places.egress_dir)))
    return 0
