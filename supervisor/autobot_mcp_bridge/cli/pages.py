"""`mcp-bridge pages DIR`, for who installs: man pages and completions, below a share directory."""

import argparse
from pathlib import Path

from autobot_mcp_bridge.cli import shells
from autobot_mcp_bridge.cli.common import Subparsers
from autobot_mcp_bridge.cli.roff import pages, reference
from autobot_mcp_bridge.cli.tree import described

# Where each shell looks for what packages bring.
COMPLETIONS = {
    "bash": "bash-completion/completions/mcp-bridge",
    "zsh": "zsh/vendor-completions/_mcp-bridge",
    "fish": "fish/vendor_completions.d/mcp-bridge.fish",
}


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("pages")
    parser.add_argument("directory", metavar="DIR", type=Path)


def run(args: argparse.Namespace) -> int:
    for name, text in texts().items():
        file = args.directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return 0


def texts() -> dict[str, str]:
    """Name below the share directory to text."""
    from autobot_mcp_bridge.cli.main import whole_parser
    from autobot_mcp_bridge.config.document import files

    program = described(whole_parser())
    found = {f"man/man1/{name}": text for name, text in pages(program)}
    for file in files():
        found[f"man/man5/mcp-bridge-{file.name}.5"] = reference(file)
    for shell, place in COMPLETIONS.items():
        found[place] = shells.script(shell, program)
    return found
