"""`mcp-bridge client NAME --for CLIENT`: the entry that connects a client, printed or written."""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import (
    Subparsers,
    note,
    places_of,
    print_json,
    server_of,
)
from autobot_mcp_bridge.cli.hints import own_path, place_words
from autobot_mcp_bridge.cli.reaching import refuse_unknown, url_of, user
from autobot_mcp_bridge.config.errors import DeniedError
from autobot_mcp_bridge.config.files import replace_file
from autobot_mcp_bridge.config.headers import header_file, write_header
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.tokens import TokenStore
from autobot_mcp_bridge.connect import snippets
from autobot_mcp_bridge.connect.clients import CLIENTS, Scope, file_of
from autobot_mcp_bridge.connect.edit_file import (
    Written,
    acting_for,
    other_user,
    rendered,
    write,
)
from autobot_mcp_bridge.connect.snippets import Snippet
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import ServerId
from autobot_mcp_bridge.units.apply import Applier

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what each of the clients allows
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "client",
        help="connect a client to a server",
        epilog="Without --write the entry is printed. No token stands in it: the client takes it "
        "from a variable, asks for it, or has it read from a file. Example: mcp-bridge client "
        "files --for cursor --write",
    )
    parser.add_argument("name", metavar="NAME", help="the whole name: files is not acme.files")
    parser.add_argument(
        "--for", dest="client", required=True, choices=list(CLIENTS), help="which client"
    )
    parser.add_argument(
        "--scope",
        choices=[scope.value for scope in Scope],
        default=Scope.USER.value,
        help="the user's file, or that of the project in this directory (default: user)",
    )
    parser.add_argument(
        "--write", action="store_true", help="write it into the client's file, with a backup"
    )
    parser.add_argument("--file", metavar="PATH", help="the client's file, where it is another")
    parser.add_argument(
        "--token-file",
        metavar="PATH",
        help="have `mcp-bridge stdio` read the token from there; it is 0600",
    )
    parser.add_argument(
        "--new-token", action="store_true", help="make a token, and store it if there is a file"
    )
    parser.add_argument(
        "--url", metavar="BASE", help="as the client reaches the proxy, from another machine"
    )
    parser.add_argument("--as", dest="entry", metavar="ENTRY", help="the entry's name")
    parser.add_argument(
        "--replace", action="store_true", help="even if the entry is of another server"
    )
    parser.add_argument("--json", action="store_true", help="for programs")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is written, and where the token comes from.

    Attributes:
        token_file: what holds the token; None: no file does.
        apart: whether the file is the caller's own choice.
    """

    snippet: Snippet
    token_file: Path | None = None
    apart: bool = False


def run(args: argparse.Namespace) -> int:
    client = CLIENTS[args.client]
    server = server_of(args.name)
    scope = Scope(args.scope)
    places = places_of(args)
    if args.url is None or args.new_token:
        refuse_unknown(places, server)
    home, environ = user()
    file = (
        Path(args.file).expanduser().absolute()
        if args.file
        else file_of(client, scope, home=home, project=Path.cwd(), environ=environ)
    )
    wanted = _wanted(args, places, server, file)
    if args.new_token and wanted.apart and wanted.token_file and wanted.token_file.exists():
        raise UsageError(f"{wanted.token_file} exists; allowed is another --token-file")
    written = write(file, wanted.snippet, scope, replace=args.replace) if args.write else None
    token = _new_token(places, server, wanted) if args.new_token else None
    if args.json:
        print_json(_as_data(file, wanted, written, token))
    else:
        _show(args, file, wanted, written, token)
    return 0


def _wanted(args: argparse.Namespace, places: Places, server: ServerId, file: Path) -> _Wanted:
    client = CLIENTS[args.client]
    name = args.entry or snippets.name_of(server)
    if not _NAME.fullmatch(name):
        raise UsageError("--as: allowed are 1 to 64 of a-z, A-Z, 0-9, - and _")
    if client.remote is not None and not args.token_file:
        url = url_of(server, places, args.url)
        return _Wanted(snippets.over_http(client, client.remote, server, name, url))
    own = args.url is None and other_user(file) is None
    if not args.token_file and not own:
        raise UsageError(
            f"{client.title} starts `mcp-bridge stdio`, as its own user: allowed is "
            "--token-file PATH, a file of that user's"
        )
    token_file = Path(args.token_file) if args.token_file else header_file(places, server)
    if args.url is None:
        token_file = token_file.expanduser().absolute()
    # Another user does not find this one's proxy by a server's name.
    target = [*place_words(places), server.instance] if own else [url_of(server, places, args.url)]
    program = "mcp-bridge" if args.url else own_path()
    argv = [program, "stdio", *target, "--token-file", str(token_file)]
    snippet = snippets.over_stdio(client, server, name, argv)
    return _Wanted(snippet, token_file, apart=bool(args.token_file))


def _new_token(places: Places, server: ServerId, wanted: _Wanted) -> str:
    if places.accepted.exists() and not places.tokens_d.is_dir():
        Applier(places, note).lay()  # made by root alone, the proxy could not read it
    label = f"for {wanted.snippet.client.title}"
    token, _ = TokenStore(places.tokens_d).new(server.instance, label, None)
    if wanted.apart and wanted.token_file is not None:
        with acting_for(wanted.token_file):
            try:
                wanted.token_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                replace_file(wanted.token_file, f"{token}\n".encode(), 0o600)
            except PermissionError as error:
                raise DeniedError(f"{wanted.token_file}: {error.strerror}") from error
    elif wanted.token_file is not None:
        write_header(places, server, token)
    control.tell(places)
    return token


def _as_data(
    file: Path, wanted: _Wanted, written: Written | None, token: str | None
) -> dict[str, Any]:
    snippet = wanted.snippet
    return {
        "client": snippet.client.name,
        "server": snippet.server.instance,
        "file": str(file),
        "entry": snippet.name,
        "document": snippet.document,
        "changed": written is not None and written.changed,
        "backup": str(written.backup) if written and written.backup else None,
        "variable": snippet.variable,
        "asks": snippet.asked is not None,
        "token_file": str(wanted.token_file) if wanted.token_file else None,
        # As `token new` does: it is told once, unless a file has it.
        **({"token": token} if token is not None and wanted.token_file is None else {}),
    }


def _show(
    args: argparse.Namespace,
    file: Path,
    wanted: _Wanted,
    written: Written | None,
    token: str | None,
) -> None:
    snippet, client = wanted.snippet, wanted.snippet.client
    if written is None:
        print(rendered(snippet), end="")
        of_user = args.scope == "user" and not args.file
        other = f" (elsewhere: {client.elsewhere})" if client.elsewhere and of_user else ""
        note(f"this belongs into {file}{other}; --write puts it there")
    elif not written.changed:
        note(f"{file} has it already")
    elif written.backup is None:
        note(f"{file} is written; it is new")
    else:
        note(f"{file} is written; before, it was {written.backup}")
    if args.scope == Scope.PROJECT.value and client.trust:
        note(client.trust)
    url = next((str(v) for k, v in snippet.entry.items() if k.lower().endswith("url")), "")
    if urlsplit(url).scheme == "http" and urlsplit(url).hostname not in _LOOPBACK:
        note(f"the token goes to {urlsplit(url).hostname} unencrypted: use https")
    _tell_token(args, wanted, token)


def _tell_token(args: argparse.Namespace, wanted: _Wanted, token: str | None) -> None:
    snippet, title = wanted.snippet, wanted.snippet.client.title
    new = f"`mcp-bridge token new {snippet.server}`"
    if wanted.token_file is not None:
        if token is not None:
            note(f"{wanted.token_file} is written")
        elif args.url is None and not wanted.token_file.exists():
            note(f"{wanted.token_file} is missing; --new-token makes it")
    elif snippet.variable is not None:
        value = token or f"…, which {new} tells"
        note(f"{title} takes the token from a variable: export {snippet.variable}={value}")
    else:
        note(f"{title} asks for the token" + (f": {token}" if token else f"; {new} tells one"))
