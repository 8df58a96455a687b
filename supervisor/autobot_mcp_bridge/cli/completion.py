"""`mcp-bridge completion SHELL`: what completes its commands, options and servers there."""

import argparse

from autobot_mcp_bridge.cli.common import Subparsers, places_of

SHELLS = ("bash", "zsh", "fish")
NAMES = "names"


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "completion",
        help="print what completes commands in a shell",
        epilog="An installation puts it in place. By hand: source <(mcp-bridge completion bash); "
        "mcp-bridge completion fish | source",
    )
    parser.add_argument("shell", choices=[*SHELLS, NAMES], metavar="|".join(SHELLS))


def run(args: argparse.Namespace) -> int:
    if args.shell == NAMES:
        return _names(args)
    from autobot_mcp_bridge.cli import shells
    from autobot_mcp_bridge.cli.main import whole_parser
    from autobot_mcp_bridge.cli.tree import described

    print(shells.script(args.shell, described(whole_parser())), end="")
    return 0


def _names(args: argparse.Namespace) -> int:
    """The servers in the files, for a person who waits: nothing is checked, or imported for it."""
    from autobot_mcp_bridge.config.named import named

    for name in named(places_of(args)):
        print(name)
    return 0
