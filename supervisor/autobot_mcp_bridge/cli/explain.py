"""`mcp-bridge explain CODE`: what a stable word means, and what to do."""

import argparse
import textwrap

from autobot_mcp_bridge.cli.common import Subparsers, print_json, print_table
from autobot_mcp_bridge.config.errors import MissingError
from autobot_mcp_bridge.diagnosis.codes import ALL, BY_WORD, Code
from autobot_mcp_bridge.diagnosis.codes.page import markdown, near

_WIDTH = 100
_LABELS = ("meaning", "usually", "remedy", "look")


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("explain", help="say what an error's code means")
    parser.add_argument("code", metavar="CODE", nargs="?", help="absent: list all codes")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="for programs")
    form.add_argument("--markdown", action="store_true", help="print docs/ERRORS.md")


def run(args: argparse.Namespace) -> int:
    if args.markdown:
        print(markdown(), end="")
        return 0
    codes = ALL if args.code is None else (_found(args.code),)
    if args.json:
        print_json([code.as_data() for code in codes])
    elif args.code is None:
        print_table(("CODE", "MEANING"), [(code.word, code.meaning) for code in codes])
    else:
        print(_shown(codes[0]))
    return 0


def _found(word: str) -> Code:
    if (code := BY_WORD.get(word)) is not None:
        return code
    nearest = near(word)
    hint = f"nearest is {', '.join(nearest)}" if nearest else "`mcp-bridge explain` lists all"
    raise MissingError(f"{word}: no such code; {hint}")


def _shown(code: Code) -> str:
    lines = [code.word]
    for label in _LABELS:
        begin = f"  {label}".ljust(11)
        rest = " " * len(begin)
        lines.append(
            textwrap.fill(
                getattr(code, label), _WIDTH, initial_indent=begin, subsequent_indent=rest
            )
        )
    return "\n".join(lines)
