"""What the subcommands share: options, places, names, output."""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from autobot_mcp_bridge.config.errors import MissingError
from autobot_mcp_bridge.config.places import ENV_CONFIG_DIR, Places, resolve_places
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import ServerId, parse_instance

Subparsers = Any  # argparse keeps the name of its class private
_MAX_ENDPOINT_BYTES = 65536
_LEAST_SHOWN = 20  # characters of a last column, however narrow the terminal


class Parser(argparse.ArgumentParser):
    """argparse, with the exit status of sysexits(3) for wrong usage."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(UsageError.exit_code, f"{self.prog}: {message}\n")


def add_place_options(parser: argparse.ArgumentParser) -> None:
    """The three directories; absent from the namespace where they are not given.

    That way they can stand before or after the subcommand.
    """
    for name in ("config", "state", "runtime"):
        parser.add_argument(
            f"--{name}-dir",
            metavar="DIR",
            default=argparse.SUPPRESS,
            help=f"the {name} directory (default: by user, or MCP_BRIDGE_{name.upper()}_DIR)",
        )


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`: the result on stdout as one object; a failure is one with `error` and `exit`."""
    parser.add_argument("--json", action="store_true", help="for programs")


def places_of(args: argparse.Namespace, *, adopt_running: bool = True) -> Places:
    """The places that the command works on.

    Without --config-dir (or its environment variable) a running proxy's are taken, and it is
    said on stderr where they are not this user's own.
    """
    given = vars(args)
    places = resolve_places(
        config_dir=given.get("config_dir"),
        state_dir=given.get("state_dir"),
        runtime_dir=given.get("runtime_dir"),
    )
    if not adopt_running or "config_dir" in given or os.environ.get(ENV_CONFIG_DIR):
        return places
    running = running_endpoint(places)
    if running is None or not isinstance(running.get("config_dir"), str):
        return places
    adopted = resolve_places(
        config_dir=running["config_dir"],
        state_dir=given.get("state_dir") or _text(running.get("state_dir")) or places.state_dir,
        runtime_dir=places.runtime_dir,
    )
    if adopted != places:
        note(f"using the running proxy's {adopted.config_dir} and {adopted.state_dir}")
    return adopted


def running_endpoint(places: Places) -> dict[str, Any] | None:
    """What the running proxy says of itself; None where none runs.

    Only believed from this user or root: it names the directory that a command then writes to.
    """
    try:
        with places.endpoint_file.open("rb") as file:
            if os.fstat(file.fileno()).st_uid not in {0, os.geteuid()}:
                return None
            found = json.loads(file.read(_MAX_ENDPOINT_BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("pid"), int):
        return None
    return found if lives(found["pid"]) else None


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return pid > 0


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def server_of(text: str) -> ServerId:
    """Read a NAME argument.

    Raises:
        UsageError: it cannot be a server's name.
    """
    try:
        return parse_instance(text)
    except ValueError as error:
        raise UsageError(str(error)) from error


def known_server(places: Places, server: ServerId) -> None:
    """Refuse a server that stands nowhere in the configuration.

    Raises:
        MissingError: it does not; the message names those that do.
    """
    from autobot_mcp_bridge.config import edit
    from autobot_mcp_bridge.config.sources import read_sources

    sources = read_sources(places)
    if edit.find(sources, server) is None:
        raise MissingError(edit.no_such_server(server.instance, edit.names(sources)))


def not_served(places: Places, server: ServerId) -> MissingError:
    """Of a server that the proxy does not know: whether its files do."""
    try:
        known_server(places, server)
    except MissingError as error:
        return error
    return MissingError(
        f"{server} is in the files and not in force: `mcp-bridge check` tells their mistakes, "
        "and `mcp-bridge apply` puts them to use"
    )


def duration(text: str) -> float:
    """Read `30s`, `1h` for argparse."""
    from autobot_mcp_bridge.model.quantities import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def note(text: str) -> None:
    """Say something that is not the command's result."""
    print(f"mcp-bridge: {printable(text)}", file=sys.stderr)


def printable(text: str) -> str:
    """The text without what a terminal would act on (a file's name, a server's answer)."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2), flush=True)


def print_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, columns: int | None = None
) -> None:
    """Columns as wide as their widest cell; the last one is cut where a line exceeds `columns`."""
    table = [list(head), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(_cut("  ".join(cells).rstrip(), columns, sum(widths[:-1]) + 2 * len(widths) - 2))


def _cut(line: str, columns: int | None, last: int) -> str:
    """The line in so many columns, but for what stands before the last one, which begins there."""
    if columns is None or len(line) <= columns:
        return line
    return line[: max(columns, last + _LEAST_SHOWN) - 1].rstrip() + "…"


def exists(path: Path) -> bool:
    """As Path.exists, but a directory that may not be entered says no."""
    try:
        return path.exists()
    except OSError:
        return False
