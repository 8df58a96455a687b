"""`mcp-bridge schema`: for editors; with --markdown, the page in docs/."""

import argparse

from autobot_mcp_bridge.cli.common import Subparsers, print_json
from autobot_mcp_bridge.config.document import markdown
from autobot_mcp_bridge.config.schema import servers_schema


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("schema", help="print the JSON Schema of servers.json")
    parser.add_argument("--markdown", action="store_true", help="print docs/CONFIGURATION.md")


def run(args: argparse.Namespace) -> int:
    if args.markdown:
        print(markdown(), end="")
    else:
        print_json(servers_schema())
    return 0
