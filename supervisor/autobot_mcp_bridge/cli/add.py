"""`mcp-bridge add NAME -- CMD…`: one more server, with its first token."""

import argparse
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.cli.common import (
    Subparsers,
    add_json,
    exists,
    note,
    places_of,
    print_json,
    server_of,
)
from autobot_mcp_bridge.config import edit
from autobot_mcp_bridge.config.headers import write_header
from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import DEFAULT_TENANT, ServerId


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "add",
        help="add a server",
        usage="mcp-bridge add NAME [options] -- COMMAND [WORD ...]",
        epilog="Example: mcp-bridge add files --read /srv -- npx -y "
        "@modelcontextprotocol/server-filesystem /srv",
    )
    parser.set_defaults(takes_rest=True)
    parser.add_argument("name", metavar="NAME", help="NAME, TENANT.NAME or TENANT.PROJECT.NAME")
    parser.add_argument("--tenant", help="whose it is")
    parser.add_argument("--project", help="of which project")
    parser.add_argument(
        "--env", action="append", default=[], metavar="KEY=VALUE", help="not for secrets"
    )
    parser.add_argument(
        "--tool-allow", action="append", default=[], metavar="GLOB", help="a tool that may be used"
    )
    beside = {
        "read": "of homes it sees nothing else, elsewhere what everybody may read",
        "write": "nothing else but its own directories",
    }
    for verb, rest in beside.items():
        parser.add_argument(
            f"--{verb}",
            action="append",
            default=[],
            metavar="PATH",
            help=f"what it may {verb}, with all below; {rest}",
        )
    parser.add_argument("--cwd", metavar="DIR", help="working directory (default: its own)")
    add_json(parser)
    parser.add_argument("--warm", action="store_true", help="start it without waiting for a call")


def run(args: argparse.Namespace) -> int:
    if not args.rest:
        raise UsageError("the server's command is missing; allowed is add NAME -- COMMAND [WORD …]")
    server = _server(args)
    places = places_of(args)
    edited = edit.add(places, server, _settings(args))
    store = TokenStore(places.tokens_d)
    # An earlier server of this name may have been removed by hand: its callers are not let in.
    if store.remove(server.instance):
        note(f"the tokens of an earlier {server} are revoked")
    token, _ = store.new(server.instance, "made by add")
    header = write_header(places, server, token)
    note(f"{edited.file} is written")
    for path in _invisible(args):
        note(f"{path} is not visible to it in the sandbox; paths.read or paths.write makes it so")
    if args.json:
        told = {"server": server.instance, "changed": True, "file": str(edited.file)}
        print_json({**told, "path": server.path, "token": token, "header": str(header)})
        return 0
    print(f"path    {server.path}")
    print(f"token   {token}")
    print(f"header  {header}")
    return 0


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
    given = [*args.read, *args.write]
    words = [word for word in args.rest[1:] if word.startswith("/") and exists(Path(word))]
    return [word for word in words if not any(Path(word).is_relative_to(path) for path in given)]


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    settings: dict[str, Any] = {"command": args.rest}
    if args.env:
        pairs = [text.partition("=") for text in args.env]
        if not all(equals for _, equals, _ in pairs):
            raise UsageError("--env: allowed is KEY=VALUE")
        settings["env"] = {key: value for key, _, value in pairs}
    if args.tool_allow:
        settings["tools"] = {"allow": args.tool_allow}
    paths = {verb: found for verb in ("read", "write") if (found := getattr(args, verb))}
    if paths:
        settings["paths"] = paths
    if args.cwd:
        settings["cwd"] = args.cwd
    if args.warm:
        settings["warm"] = True
    return settings
