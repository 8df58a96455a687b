"""`mcp-bridge token new|rotate|revoke|list NAME`."""

import argparse
import time

from autobot_mcp_bridge.cli import control, digests
from autobot_mcp_bridge.cli.common import (
    Subparsers,
    duration,
    exists,
    known_server,
    note,
    places_of,
    print_json,
    server_of,
)
from autobot_mcp_bridge.config.headers import header_file, remove_header, write_header
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.tokens import DEFAULT_OVERLAP, TokenRecord, TokenStore
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import ServerId


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "token", help="make, rotate, revoke and list the tokens of a server"
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    new = verbs.add_parser("new", help="make one more token; it is printed once")
    new.add_argument("--expires", type=duration, metavar="TIME", help="how long it counts (30d)")
    rotate = verbs.add_parser("rotate", help="make a new token; the older ones end soon")
    rotate.add_argument(
        "--overlap",
        type=duration,
        default=DEFAULT_OVERLAP,
        metavar="TIME",
        help="how long the older ones still count (1h)",
    )
    for making in (new, rotate):
        making.add_argument("--label", default="", help="what it is for")
        making.add_argument(
            "--write-header", action="store_true", help="store it as the server's header file"
        )
    revoke = verbs.add_parser("revoke", help="end a token at once")
    listing = verbs.add_parser("list", help="show the tokens; never their values")
    for verb in (new, rotate, revoke, listing):
        verb.add_argument("name", metavar="NAME", help="the whole name: files is not acme.files")
        verb.add_argument("--json", action="store_true", help="for programs")
    which = revoke.add_mutually_exclusive_group(required=True)
    which.add_argument("id", metavar="ID", nargs="?", help="as `token list` shows it")
    which.add_argument("--all", action="store_true", help="every token of the server")


def run(args: argparse.Namespace) -> int:
    server = server_of(args.name)
    places = places_of(args)
    store = TokenStore(places.tokens_d)
    digests.lay(places, places.tokens_d)
    match args.verb:
        case "new":
            known_server(places, server)
            expires = None if args.expires is None else time.time() + args.expires
            _made(args, places, server, store.new(server.instance, args.label, expires))
        case "rotate":
            known_server(places, server)
            made = store.rotate(server.instance, args.overlap, args.label)
            _made(args, places, server, made)
        case "revoke":
            _revoke(args, places, server, store)
        case _:
            records = store.list(server.instance)
            if not records:
                known_server(places, server)
            _list(args, records)
            return 0
    if not control.tell(places):
        note("the running proxy knows it within a second or two, not yet")
    return 0


def _made(
    args: argparse.Namespace, places: Places, server: ServerId, made: tuple[str, TokenRecord]
) -> None:
    token, record = made
    if args.write_header:
        note(f"{write_header(places, server, token)} is written")
    elif args.verb == "rotate" and exists(header_file(places, server)):
        note(f"{header_file(places, server)} holds an older token; --write-header replaces it")
    if args.json:
        print_json({"token": token, **_shown(record)})
    else:
        print(token)


def _revoke(args: argparse.Namespace, places: Places, server: ServerId, store: TokenStore) -> None:
    if not args.all and not args.id:
        raise UsageError("allowed is the ID of a token, or --all")
    ended = store.revoke(server.instance, None if args.all else args.id)
    if args.all:
        remove_header(places, server)
    digests.tell_revoked(ended, "token", as_json=args.json)


def _list(args: argparse.Namespace, records: list[TokenRecord]) -> None:
    shown = [_shown(record) for record in records]
    if args.json:
        print_json({"tokens": shown})
    else:
        digests.print_records(("id", "created", "expires", "counts", "label"), shown)


def _shown(record: TokenRecord) -> dict[str, object]:
    return {**digests.shown(record), "label": record.label}
