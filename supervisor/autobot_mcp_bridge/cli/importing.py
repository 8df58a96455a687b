"""`mcp-bridge import FILE`: the servers of an MCP client's configuration."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from autobot_mcp_bridge.cli import in_force
from autobot_mcp_bridge.cli.common import (
    Subparsers,
    note,
    places_of,
    print_json,
    print_table,
    printable,
)
from autobot_mcp_bridge.config.errors import DataError, MissingError
from autobot_mcp_bridge.config.files import locked
from autobot_mcp_bridge.config.headers import write_header
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.sources import read_sources
from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.connect.imported import document, report, shapes
from autobot_mcp_bridge.connect.imported.carry_out import carry_out
from autobot_mcp_bridge.connect.imported.entry import draft_of
from autobot_mcp_bridge.connect.imported.plan import Planned, Planner, What, Wishes
from autobot_mcp_bridge.connect.imported.secrecy import is_secret
from autobot_mcp_bridge.connect.imported.shapes import Raw
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import DEFAULT_TENANT, ServerId
from autobot_mcp_bridge.units import rotations
from autobot_mcp_bridge.units.apply import Applier
from autobot_mcp_bridge.units.secrets import Secrets
from autobot_mcp_bridge.units.systemctl import has_systemd

STDIN = "-"
NETWORKS = ("none", "loopback", "internet")  # the others need a list, which differs by server
SOMETHING_LEFT = 1


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "import",
        help="take over the servers of an MCP client's configuration",
        epilog="Reads what Claude Desktop, Claude Code, VS Code, Cursor, Windsurf, Codex, Gemini "
        "CLI, Continue and Goose write. Secrets go into the store of `mcp-bridge secret`, never "
        "into servers.json. Exit status: 0 all is here, 1 something is left to do, 65 the file is "
        "wrong and nothing was written.",
    )
    parser.add_argument("file", metavar="FILE", help=f"the client's file; {STDIN} is stdin")
    parser.add_argument("--tenant", default=DEFAULT_TENANT, help="whose the servers are")
    parser.add_argument("--project", help="of which project")
    parser.add_argument(
        "--only", action="append", default=[], metavar="ENTRY", help="an entry, by its name there"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what stands for ${NAME} or ${input:NAME}; not for secrets",
    )
    parser.add_argument(
        "--network", choices=NETWORKS, help="what each server may reach (default: nothing)"
    )
    parser.add_argument(
        "--replace", action="store_true", help="definitions and secrets that are there and differ"
    )
    parser.add_argument("--no-tokens", action="store_true", help="make no token for clients")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be written")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    given = _given(args.set)
    raws = _entries(args.file)
    if unknown := set(args.only) - {raw.name for raw in raws}:
        names = ", ".join(dict.fromkeys(raw.name for raw in raws))
        raise UsageError(f"--only {', '.join(sorted(unknown))}: the file has {names}")
    places = places_of(args)
    store = store_of(places)
    sources = read_sources(places)
    wishes = Wishes(
        args.tenant,
        args.project,
        replace=args.replace,
        only=frozenset(args.only),
        network=args.network,
        units=places.accepted.exists(),
    )
    planned = Planner(sources, store, wishes).plan(draft_of(raw, given) for raw in raws)
    tokens: dict[ServerId, tuple[str, Path]] = {}
    if not args.dry_run:
        files = carry_out(places, store, planned, seen=sources.digest)
        if not args.no_tokens:
            tokens = _tokens(places, planned)
        _renew(places, planned)
        for file in files:
            note(f"{file} is written")
    _show(args, planned, tokens)
    left = report.needs_a_person(planned)
    if not args.dry_run:
        left = _wait(places, planned) or left
    return SOMETHING_LEFT if left else 0


def store_of(places: Places) -> Secrets | None:
    """Where secrets can go; None where no unit could be given one, or not by this user."""
    if places.accepted.exists() and has_systemd() and os.geteuid() == 0:
        return Secrets(places)
    return None


def _given(words: Sequence[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    if not all(equals for _, equals, _ in pairs):
        raise UsageError("--set: allowed is NAME=VALUE")
    given = {name: value for name, _, value in pairs}
    for name, value in given.items():
        if is_secret(name, value):
            raise UsageError(
                f"--set {name}: a secret never stands in the command line, where every user sees "
                "it; import without, and type the `mcp-bridge secret set` that is printed"
            )
    return given


def _entries(file: str) -> list[Raw]:
    if file == STDIN:
        data, name = sys.stdin.buffer.read(document.MOST_BYTES + 1), "stdin"
    else:
        try:
            with Path(file).open("rb") as opened:  # a pipe of the shell's `<( )` will do, too
                data, name = opened.read(document.MOST_BYTES + 1), file
        except FileNotFoundError:
            raise MissingError(f"{file}: no such file") from None
    return shapes.entries(document.parse(data, name), name)


def _tokens(places: Places, planned: Sequence[Planned]) -> dict[ServerId, tuple[str, Path]]:
    """A token for each server that was not there before."""
    store = TokenStore(places.tokens_d)
    made = {}
    for each in planned:
        if each.server is None or not each.settings or each.replaces:
            continue
        # An earlier server of this name may have been removed by hand: its callers are not let in.
        store.remove(each.server.instance)
        token, _ = store.new(each.server.instance, "made by import")
        made[each.server] = token, write_header(places, each.server, token)
    return made


def _renew(places: Places, planned: Sequence[Planned]) -> None:
    """Have servers that were there start anew with another value, as `secret rotate` does."""
    names = [
        named.name
        for each in planned
        if each.what is not What.SKIPPED and each.replaces
        for named in each.secrets
        if named.put
    ]
    if not names:
        return
    with locked(places.state_dir):
        for name in names:
            rotations.note(places.state_dir, name)
    try:
        Applier(places, note, retry=False).apply()
    except DataError as error:
        note(f"it counts; but the configuration is not applied, for it has mistakes:\n{error}")


def _wait(places: Places, planned: Sequence[Planned]) -> bool:
    """Wait until the servers that are new are in force; whether one of them is not served."""
    wanted = {
        each.server: in_force.is_served
        if each.settings.get("enabled", True)
        else in_force.is_disabled
        for each in planned
        if each.server is not None and each.settings and not each.replaces
    }
    if not wanted:
        return False
    sys.stdout.flush()  # whoever interrupts the wait has the tokens
    rows = in_force.wait_for_all(places, wanted)
    statuses = [in_force.say(server, row) for server, row in rows.items()]
    return any(statuses)


def _show(
    args: argparse.Namespace,
    planned: Sequence[Planned],
    tokens: dict[ServerId, tuple[str, Path]],
) -> None:
    if args.json:
        entries = [report.as_data(each) for each in planned]
        for entry, each in zip(entries, planned, strict=True):
            if each.server in tokens:
                token, header = tokens[each.server]
                entry |= {"path": each.server.path, "token": token, "header": str(header)}
        print_json({"dry_run": args.dry_run, "entries": entries})
        return
    print_table(("ENTRY", "WHAT", "WHY"), list(report.rows(planned)))
    for each in planned:
        lines = list(report.remarks(each))
        if args.dry_run and each.settings:
            lines += report.definition(each).splitlines()
        if lines:
            print(f"\n{printable(report.name(each))}  ({printable(each.draft.where)})")
            print("\n".join(f"  {printable(line)}" for line in lines))
    for server, (token, header) in tokens.items():
        print(f"\n{server}\npath    {server.path}\ntoken   {token}\nheader  {header}")
    if any(each.settings.get("command") for each in planned) and args.network is None:
        note("with systemd a server reaches no network unless `network` says so; see --network")
