"""`mcp-bridge`: finds the subcommand and imports that one only, so that every command starts fast."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.cli.common import Parser, Subparsers, add_place_options, note
from autobot_mcp_bridge.model.errors import BridgeError, UsageError

# Command: its module in this package, and its line in --help.
COMMANDS = {
    "serve": ("serve", "run the proxy and its servers in the foreground"),
    "egress": ("egress", "run the egress proxy of servers with network mode names"),
    "apply": ("apply", "put servers.json to use with systemd"),
    "install": ("install", "put the program and its units in place on this host"),
    "uninstall": ("install", "take everything off this host"),
    "demo": ("demo", "be a small MCP server on stdin and stdout, for first steps"),
    "fetch": ("fetch", "install the packages of the configured servers"),
    "outdated": ("outdated", "show which packages have newer versions"),
    "upgrade": ("upgrade", "exchange the version of a server's package, or go back"),
    "check": ("check", "report every mistake in the configuration"),
    "list": ("listing", "show the servers and their state"),
    "status": ("status", "show everything about one server"),
    "gc": ("gc", "remove what nobody needs any more from the disk"),
    "logs": ("logs", "show what a server and the proxy have logged"),
    "doctor": ("doctor", "find out why a server does not start"),
    "support": ("support", "write an archive for a report, without secrets"),
    "explain": ("explain", "say what an error's code means"),
    "top": ("top", "show what the running servers use"),
    "call": ("call", "call a tool of a server"),
    "add": ("add", "add a server"),
    "remove": ("remove", "remove a server"),
    "enable": ("enable", "let a server be served"),
    "disable": ("enable", "let a server not be served"),
    "token": ("token", "make, rotate, revoke and list the tokens of a server"),
    "key": ("key", "make, rotate, revoke and list the API keys of a tenant"),
    "secret": ("secret", "set, rotate, remove and list the secrets of servers"),
    "start": ("operate", "start a server now"),
    "stop": ("operate", "stop a server until it is started again"),
    "reset": ("operate", "forget a server's crashes and close its breaker"),
    "reload": ("reload", "read the configuration again now"),
    "schema": ("schema", "print the JSON Schema of servers.json"),
}
_END = "--"
_IO_ERROR = 74  # EX_IOERR: a disk that is full, a directory that may not be written
_INTERRUPTED = 130  # as a shell says of SIGINT


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit status, by sysexits(3) where it failed."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(words)
    except BridgeError as error:
        note(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return _INTERRUPTED
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            # The reader (`| head`) has gone; Python must not complain about it at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        if error.strerror is None:
            raise
        note(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
        return _IO_ERROR


def _run(words: list[str]) -> int:
    rest: list[str] | None = None
    if _END in words:
        at = words.index(_END)
        words, rest = words[:at], words[at + 1 :]
    name = _command(words)
    parser = Parser(
        prog="mcp-bridge",
        description="Every MCP server a supervised service behind one small HTTP proxy.",
    )
    parser.add_argument("--version", action="version", version=f"mcp-bridge {__version__}")
    add_place_options(parser)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    module = COMMANDS[name][0] if name else None
    for command, (owner, text) in COMMANDS.items():
        if owner != module:
            subparsers.add_parser(command, help=text)
    if module is None:
        parser.parse_args(words)
        raise UsageError(f"allowed are {', '.join(COMMANDS)}")
    loaded = import_module(f"autobot_mcp_bridge.cli.{module}")
    loaded.add_parser(subparsers)
    _add_everywhere(subparsers)
    args = parser.parse_args(words)
    if rest is not None and not getattr(args, "takes_rest", False):
        raise UsageError(f"{name} takes nothing after {_END}")
    args.rest = rest
    status: int = loaded.run(args)
    return status


def _add_everywhere(subparsers: Subparsers) -> None:
    for parser in subparsers.choices.values():
        with contextlib.suppress(argparse.ArgumentError):  # it has them already
            add_place_options(parser)


def _command(words: Sequence[str]) -> str | None:
    """The subcommand among the words, if there is one; argparse judges the rest."""
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in {"--config-dir", "--state-dir", "--runtime-dir"}:
            skip = True
        elif not word.startswith("-"):
            return word if word in COMMANDS else None
    return None


if __name__ == "__main__":
    sys.exit(main())
