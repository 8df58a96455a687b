"""`mcp-bridge`: finds the subcommand and imports that one only, so that every command starts fast."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.cli.common import Parser, Subparsers, add_place_options, note, print_json
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
    "audit": ("audit", "check and show the records of calls"),
    "doctor": ("doctor", "find out why a server does not start"),
    "support": ("support", "write an archive for a report, without secrets"),
    "explain": ("explain", "say what an error's code means"),
    "top": ("top", "show what the running servers use"),
    "call": ("call", "call a tool of a server"),
    "stdio": ("stdio", "be a stdio MCP server in front of one over HTTP"),
    "add": ("add", "add a server"),
    "client": ("client", "connect a client to a server"),
    "remove": ("remove", "remove a server"),
    "import": ("importing", "take over the servers of an MCP client's configuration"),
    "enable": ("enable", "let a server be served"),
    "disable": ("enable", "let a server not be served"),
    "token": ("token", "make, rotate, revoke and list the tokens of a server"),
    "key": ("key", "make, rotate, revoke and list the API keys of a tenant"),
    "tools": ("tools", "show the tools of servers, and accept changed ones"),
    "secret": ("secret", "set, rotate, remove and list the secrets of servers"),
    "start": ("operate", "start a server now"),
    "stop": ("operate", "stop a server until it is started again"),
    "reset": ("operate", "forget a server's crashes and close its breaker"),
    "reload": ("reload", "read the configuration again now"),
    "schema": ("schema", "print the JSON Schema of servers.json"),
    "completion": ("completion", "print what completes commands in a shell"),
}
# For programs, not for people: --help does not show them.
HIDDEN = {
    "pages": "pages",
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
        if "--json" in words[: words.index(_END) if _END in words else None]:
            print_json({"error": str(error), "exit": error.exit_code})
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
    if name is None:
        _parser(frozenset()).parse_args(words)
        raise UsageError(f"allowed are {', '.join(COMMANDS)}")
    module = HIDDEN.get(name) or COMMANDS[name][0]
    parser = _parser(frozenset({module}))
    args = parser.parse_args(words)
    if rest is not None and not getattr(args, "takes_rest", False):
        raise UsageError(f"{name} takes nothing after {_END}")
    args.rest = rest
    status: int = _module(module).run(args)
    return status


def whole_parser() -> Parser:
    """The parser with every command that --help shows; imports all of them."""
    return _parser(frozenset(owner for owner, _ in COMMANDS.values()))


def _parser(modules: frozenset[str]) -> Parser:
    """With the commands of these modules, and the names of the others."""
    parser = Parser(
        prog="mcp-bridge",
        description="Every MCP server a supervised service behind one small HTTP proxy.",
    )
    parser.add_argument("--version", action="version", version=f"mcp-bridge {__version__}")
    add_place_options(parser)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    added: set[str] = set()
    for command, (owner, text) in COMMANDS.items():
        if owner not in modules:
            subparsers.add_parser(command, help=text)
        elif owner not in added:
            added.add(owner)
            _module(owner).add_parser(subparsers)
    for module in modules - added:
        _module(module).add_parser(subparsers)
    _add_everywhere(subparsers)
    return parser


def _module(name: str) -> ModuleType:
    return import_module(f"autobot_mcp_bridge.cli.{name}")


def _add_everywhere(subparsers: Subparsers) -> None:
    for parser in subparsers.choices.values():
        with contextlib.suppress(argparse.ArgumentError):  # it has them already
            add_place_options(parser)
        for action in vars(parser)["_actions"]:
            if isinstance(action.choices, dict):  # its verbs
                _add_everywhere(action)


def _command(words: Sequence[str]) -> str | None:
    """The subcommand among the words, if there is one; argparse judges the rest."""
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in {"--config-dir", "--state-dir", "--runtime-dir"}:
            skip = True
        elif not word.startswith("-"):
            return word if word in COMMANDS or word in HIDDEN else None
    return None


if __name__ == "__main__":
    sys.exit(main())
