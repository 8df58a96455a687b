"""`mcp-bridge add NAME -- CMD…`: one more server, with its first token."""

import argparse
from pathlib import Path

from autobot_mcp_bridge.cli import in_force
from autobot_mcp_bridge.cli.common import (
    Subparsers,
    add_json,
    exists,
    note,
    places_of,
    print_json,
    server_of,
)
from autobot_mcp_bridge.cli.definition import add_options, definition_of
from autobot_mcp_bridge.config import edit
from autobot_mcp_bridge.config.headers import write_header
from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import DEFAULT_TENANT, ServerId


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "add",
        help="add a server",
        usage="mcp-bridge add NAME [options] (--url URL | -- COMMAND [WORD ...])",
        epilog="Example: mcp-bridge add files --read /srv -- npx -y "
        "@modelcontextprotocol/server-filesystem /srv. Every key of a definition, with its values: "
        "docs/CONFIGURATION.md.",
    )
    parser.set_defaults(takes_rest=True)
    parser.add_argument("name", metavar="NAME", help="NAME, TENANT.NAME or TENANT.PROJECT.NAME")
    parser.add_argument("--tenant", help="whose it is")
    parser.add_argument("--project", help="of which project")
    add_options(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    if bool(args.rest) == bool(args.url):
        text = "allowed is add NAME -- COMMAND [WORD …], or add NAME --url URL"
        raise UsageError(f"the server's command is missing, or stands beside --url; {text}")
    server = _server(args)
    places = places_of(args)
    definition = definition_of(args)
    named = {"tenant": server.tenant, "project": server.project, "name": server.name}
    definition.refuse_mistakes(named, units=places.accepted.exists())
    edited = edit.add(places, server, definition.settings)
    store = TokenStore(places.tokens_d)
    # An earlier server of this name may have been removed by hand: its callers are not let in.
    if store.remove(server.instance):
        note(f"the tokens of an earlier {server} are revoked")
    token, _ = store.new(server.instance, "made by add")
    header = write_header(places, server, token)
    note(f"{edited.file} is written")
    for path in _invisible(args):
        note(f"{path} is not visible to it in the sandbox; --read or --write makes it so")
    # Before it is in force: whoever interrupts the wait has the token.
    if args.json:
        told = {"server": server.instance, "changed": True, "file": str(edited.file)}
        print_json({**told, "path": server.path, "token": token, "header": str(header)})
    else:
        print(f"path    {server.path}")
        print(f"token   {token}")
        print(f"header  {header}", flush=True)
    if args.disabled:
        in_force.wait(places, server, in_force.is_disabled)
        return 0
    return in_force.say(server, in_force.wait(places, server, in_force.is_served))


def _server(args: argparse.Namespace) -> ServerId:
    if args.tenant is None and args.project is None:
        return server_of(args.name)
    if "." in args.name:
        raise UsageError(f"{args.name} names its tenant already; leave --tenant and --project out")
    try:
        return ServerId(args.tenant or DEFAULT_TENANT, args.project, args.name)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _invisible(args: argparse.Namespace) -> list[str]:
    """Paths of this host among the command's arguments that the sandbox will not show."""
    given = [*(args.read or ()), *(args.write or ())]
    words = [word for word in (args.rest or ())[1:] if word.startswith("/") and exists(Path(word))]
    return [word for word in words if not any(Path(word).is_relative_to(path) for path in given)]
