"""`mcp-bridge stdio NAME|URL`: a stdio MCP server, for clients that know only those."""

import argparse
import asyncio
import os
import re
import stat
from pathlib import Path
from urllib.parse import urlsplit

from autobot_mcp_bridge.cli.common import Subparsers, places_of, server_of
from autobot_mcp_bridge.cli.control import ENV_TOKEN, proxy_url
from autobot_mcp_bridge.config.errors import DeniedError, MissingError
from autobot_mcp_bridge.config.headers import header_file, read_token
from autobot_mcp_bridge.model.errors import UsageError

CREDENTIAL = "mcp-bridge-token"  # its name in $CREDENTIALS_DIRECTORY (systemd.exec(5))
# Who the caller is, for the proxy's policy: variable, header, pattern.
IDENTITY = (
    ("AGENT_ID", "X-Agent-ID", re.compile(r"[a-z0-9][a-z0-9-]{0,62}")),
    ("AGENT_TYPE", "X-Agent-Type", re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")),
)
_LOOSE = 0o077  # rights of others


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "stdio",
        help="be a stdio MCP server in front of one over HTTP",
        epilog=f"The token comes from --token-file, {ENV_TOKEN}, the systemd credential "
        f"{CREDENTIAL}, or, of a NAME, the server's header file. AGENT_ID and AGENT_TYPE say who "
        "calls, where they are set.",
    )
    parser.add_argument("server", metavar="NAME|URL", help="a server here, or an endpoint anywhere")
    parser.add_argument("--token-file", metavar="FILE", help="a token, mode 0600")
    parser.add_argument(
        "--identity", action="store_true", help="refuse to begin without AGENT_ID and AGENT_TYPE"
    )


def run(args: argparse.Namespace) -> int:
    from autobot_mcp_bridge.upstream.program import run as carry
    from autobot_mcp_bridge.upstream.reach import Reach
    from autobot_mcp_bridge.upstream.settings import Settings

    headers = identity(required=args.identity)
    if "://" in args.server:
        url, token = _checked(args.server), _token(args, None)
    else:
        server, places = server_of(args.server), places_of(args)
        url = proxy_url(places).rstrip("/") + server.path
        token = _token(args, header_file(places, server))
        if token is None:
            hint = f"`mcp-bridge token new {server} --write-header` makes it"
            raise MissingError(f"{header_file(places, server)}: no such file; {hint}")
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    reach = Reach(anywhere=True, plain=urlsplit(url).scheme == "http")
    return asyncio.run(carry(Settings(url, reach, headers, attended=True)))


def identity(*, required: bool) -> dict[str, str]:
    """The headers that say who calls, of what the environment says.

    Args:
        required: both have to be there.

    Raises:
        UsageError: one is not there and required, or is no such name; all of them at once.
    """
    found, wrong, lacking = {}, [], []
    for variable, header, pattern in IDENTITY:
        text = os.environ.get(variable, "").strip(" \t")
        if pattern.fullmatch(text):
            found[header] = text
        elif text:
            wrong.append(f"{variable}: allowed is {pattern.pattern}")
        elif required:
            lacking.append(variable)
    if lacking:
        wrong.insert(0, f"{' and '.join(lacking)}: not set, and --identity asks for both")
    if wrong:
        raise UsageError("; ".join(wrong))
    return found


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # one that is none raises
        fits = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        fits = False
    if not fits or not url.isascii() or not url.isprintable() or {" ", "#"} & set(url):
        raise UsageError("URL: allowed is https://HOST[:PORT]/PATH, or http on a private network")
    return url


def _token(args: argparse.Namespace, header: Path | None) -> str | None:
    """The token; None: there is none.

    Raises:
        DeniedError: others may read its file, or this user may not.
        DataError: the file holds none.
        MissingError: the file that was named does not exist.
    """
    if args.token_file:
        return _private(Path(args.token_file))
    if token := os.environ.get(ENV_TOKEN):
        return token
    if directory := os.environ.get("CREDENTIALS_DIRECTORY"):
        path = Path(directory, CREDENTIAL)
        if path.exists():
            return read_token(path)  # systemd's own, which no other user reaches
    return _private(header) if header is not None and header.exists() else None


def _private(path: Path) -> str:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError as error:
        raise MissingError(f"{path}: no such file") from error
    if mode & _LOOSE:
        raise DeniedError(f"{path}: its mode is {mode:04o}; allowed is 0600: chmod 600 {path}")
    return read_token(path)
