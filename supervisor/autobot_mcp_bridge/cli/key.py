"""`mcp-bridge key new|rotate|revoke|list TENANT`."""

import argparse
import time

from autobot_mcp_bridge.cli import control, digests
from autobot_mcp_bridge.cli.common import Subparsers, duration, note, places_of, print_json
from autobot_mcp_bridge.config.digests import DEFAULT_OVERLAP
from autobot_mcp_bridge.config.errors import MissingError
from autobot_mcp_bridge.config.keys import KeyOrder, KeyRecord, KeyStore, Uses, read_uses
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.agents import Role
from autobot_mcp_bridge.model.errors import UsageError

COLUMNS = (
    *("id", "agent_id", "agent_type", "project", "roles"),
    *("created", "expires", "counts", "used", "label"),
)


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "key", help="make, rotate, revoke and list the API keys of a tenant"
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    new = verbs.add_parser("new", help="make one more key; it is printed once")
    new.add_argument("--agent-id", default="", metavar="ID", help="who calls with it")
    new.add_argument("--agent-type", default="", metavar="TYPE", help="what kind of agent that is")
    new.add_argument("--project", help="bind it to one project of the tenant")
    new.add_argument(
        "--role",
        action="append",
        type=Role,
        choices=list(Role),
        metavar="ROLE",
        help=f"{', '.join(Role)}; more than once for several (member)",
    )
    new.add_argument("--expires", type=duration, metavar="TIME", help="how long it counts (30d)")
    new.add_argument("--label", default="", help="what it is for")
    rotate = verbs.add_parser("rotate", help="give a key a new secret; the older one ends soon")
    rotate.add_argument(
        "--overlap",
        type=duration,
        default=DEFAULT_OVERLAP,
        metavar="TIME",
        help="how long the older one still counts (1h)",
    )
    revoke = verbs.add_parser("revoke", help="end a key at once")
    listing = verbs.add_parser("list", help="show the keys; never their values")
    for verb in (new, rotate, revoke, listing):
        verb.add_argument("tenant", metavar="TENANT", help="whose servers it opens")
        verb.add_argument("--json", action="store_true", help="for programs")
    rotate.add_argument("id", metavar="ID", help="as `key list` shows it")
    which = revoke.add_mutually_exclusive_group(required=True)
    which.add_argument("id", metavar="ID", nargs="?", help="as `key list` shows it")
    which.add_argument("--all", action="store_true", help="every key of the tenant")


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    store = KeyStore(places.keys_d)
    digests.lay(places, places.keys_d)
    match args.verb:
        case "new":
            _known(places, args.tenant, args.project)
            _made(args, store.new(args.tenant, _order(args)))
        case "rotate":
            _made(args, store.rotate(args.tenant, args.id, args.overlap))
        case "revoke":
            if not args.all and not args.id:
                raise UsageError("allowed is the ID of a key, or --all")
            ended = store.revoke(args.tenant, None if args.all else args.id)
            digests.tell_revoked(ended, "key", as_json=args.json)
        case _:
            _list(args, store.list(args.tenant), read_uses(places.key_uses))
            return 0
    control.tell(places)
    return 0


def _order(args: argparse.Namespace) -> KeyOrder:
    """What is wanted; a key without a name for its agent would be nobody's."""
    lacking = [
        option
        for option, value in (("--agent-id", args.agent_id), ("--agent-type", args.agent_type))
        if not value.strip()
    ]
    if lacking:
        raise UsageError(f"missing: {' and '.join(lacking)}")
    return KeyOrder(
        agent_id=args.agent_id,
        agent_type=args.agent_type,
        project=args.project,
        roles=tuple(args.role or (Role.MEMBER,)),
        label=args.label,
        expires=None if args.expires is None else time.time() + args.expires,
    )


def _known(places: Places, tenant: str, project: str | None) -> None:
    """Refuse a tenant that has no server: a slip of the pen would make a key for nothing.

    Raises:
        MissingError: it has none; the message names those that do.
    """
    from autobot_mcp_bridge.config.load import load

    ids = [spec.id for spec in load(places).servers]
    tenants = sorted({server.tenant for server in ids})
    if tenant not in tenants:
        there = f"there are servers of {', '.join(tenants)}" if tenants else "there are no servers"
        raise MissingError(f"tenant {tenant} has no server; {there}")
    if project is not None and all((s.tenant, s.project) != (tenant, project) for s in ids):
        note(f"{tenant} has no server of project {project} yet; the key opens those it shares")


def _made(args: argparse.Namespace, made: tuple[str, KeyRecord]) -> None:
    key, record = made
    if args.json:
        print_json({"key": key, **_shown(record, None)})
    else:
        print(key)


def _list(args: argparse.Namespace, records: list[KeyRecord], uses: Uses) -> None:
    used = uses.get(args.tenant, {})
    shown = [_shown(record, used.get(record.id)) for record in records]
    if args.json:
        print_json({"keys": shown})
        return
    rows = [
        {**row, "project": row["project"] or "-", "roles": ",".join(record.roles)}
        for row, record in zip(shown, records, strict=True)
    ]
    digests.print_records(COLUMNS, rows)


def _shown(record: KeyRecord, used: int | None) -> dict[str, object]:
    return {
        **digests.shown(record),
        "agent_id": record.agent_id,
        "agent_type": record.agent_type,
        "project": record.project,
        "roles": list(record.roles),
        "used": None if used is None else digests.time_of(used),
        "label": record.label,
    }
