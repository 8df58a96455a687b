"""`mcp-bridge add NAME -- CMD…`: one more server, with its first token."""

import argparse
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.cli.common import Subparsers, exists, note, places_of, server_of
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
    parser.add_argument("--url", help="of a remote server, instead of a command")
    parser.add_argument(
        "--header", action="append", default=[], metavar="NAME=TEXT", help="with --url; no secret"
    )
    parser.add_argument(
        "--header-secret",
        action="append",
        default=[],
        metavar="NAME=[PREFIX ]SECRET",
        help="with --url: a header from a secret, such as Authorization='Bearer tracker-key'",
    )
    parser.add_argument("--cwd", metavar="DIR", help="working directory (default: its own)")
    parser.add_argument("--warm", action="store_true", help="start it without waiting for a call")


def run(args: argparse.Namespace) -> int:
    if bool(args.rest) == bool(args.url):
        text = "allowed is add NAME -- COMMAND [WORD …], or add NAME --url URL"
        raise UsageError(f"the server's command is missing, or stands beside --url; {text}")
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
    words = [word for word in (args.rest or ())[1:] if word.startswith("/") and exists(Path(word))]
    return [word for word in words if not any(Path(word).is_relative_to(path) for path in given)]


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    settings: dict[str, Any] = {"url": args.url} if args.url else {"command": args.rest}
    if args.env:
        settings["env"] = _pairs(args.env, "--env: allowed is KEY=VALUE")
    if headers := _headers(args):
        settings["headers"] = headers
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


def _headers(args: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {**_pairs(args.header, "--header: allowed is NAME=TEXT")}
    clause = "--header-secret: allowed is NAME=SECRET, or NAME='PREFIX SECRET'"
    for name, text in _pairs(args.header_secret, clause).items():
        prefix, blank, secret = text.rpartition(" ")
        found[name] = {"credential": secret, **({"prefix": prefix + blank} if prefix else {})}
    return found


def _pairs(texts: list[str], clause: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if not all(equals for _, equals, _ in pairs):
        raise UsageError(clause)
    return {key: value for key, _, value in pairs}
