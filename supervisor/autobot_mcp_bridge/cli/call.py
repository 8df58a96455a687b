"""`mcp-bridge call NAME TOOL JSON`: one tool call to a running proxy, as a client makes it."""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import (
    Subparsers,
    duration,
    known_server,
    note,
    places_of,
    print_json,
    printable,
    server_of,
)
from autobot_mcp_bridge.cli.control import ENV_TOKEN, proxy_url
from autobot_mcp_bridge.cli.exchange import call_tool
from autobot_mcp_bridge.config.errors import DeniedError, MissingError, UnavailableError
from autobot_mcp_bridge.config.headers import header_file, read_token
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.errors import Cause, UsageError
from autobot_mcp_bridge.model.names import ServerId
from autobot_mcp_bridge.model.states import State

DEFAULT_SECONDS = 120.0  # twice the default of timeouts.call, and a start before it
INSTALL_POLL = 1.0  # seconds between two looks at an install
FAILED = 1
# Refused before any contact with the server: another try later may succeed.
_UNAVAILABLE = frozenset(cause.word for cause in Cause if cause.status == 503)


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "call",
        help="call a tool of a server",
        epilog=f"The token comes from --token-file, {ENV_TOKEN} or the server's header file.",
    )
    parser.add_argument("name", metavar="NAME", help="NAME, TENANT.NAME or TENANT.PROJECT.NAME")
    parser.add_argument("tool", metavar="TOOL")
    parser.add_argument("arguments", metavar="JSON", nargs="?", default="{}", help="an object")
    parser.add_argument("--token-file", metavar="FILE", help="a token or a header line with one")
    parser.add_argument("--json", action="store_true", help="print the JSON-RPC response")
    parser.add_argument(
        "--timeout", type=duration, default=DEFAULT_SECONDS, metavar="TIME", help="for all of it"
    )


def run(args: argparse.Namespace) -> int:
    server = server_of(args.name)
    arguments = _arguments(args.arguments)
    if not args.timeout > 0:
        raise UsageError("--timeout: allowed is more than 0")
    places = places_of(args)
    url = proxy_url(places).rstrip("/") + server.path
    token = _token(args, places, server)
    answer = _patiently(url, token, args, arguments, places, server)
    if args.json:
        print_json(answer)
    return _shown(answer, quiet=args.json)


def _patiently(
    url: str,
    token: str,
    args: argparse.Namespace,
    arguments: dict[str, Any],
    places: Places,
    server: ServerId,
) -> dict[str, Any]:
    """Call, again once the server's package is installed, within --timeout altogether."""
    by = time.monotonic() + args.timeout
    told = False
    while True:
        left = max(by - time.monotonic(), 0.0)
        answer = call_tool(
            url, token, args.tool, arguments, left, lambda shown: _is_ours(places, shown)
        )
        if _word(answer) != Cause.INSTALLING.word or left <= INSTALL_POLL:
            return answer
        if not told:
            note(f"waiting: {answer['error']['message']}")
            told = True
        time.sleep(INSTALL_POLL)
        while _installs(places, server) and by - time.monotonic() > INSTALL_POLL:
            time.sleep(INSTALL_POLL)


def _is_ours(places: Places, fingerprint: str) -> bool:
    """Whether the proxy says that it shows this certificate, or has shown it before the last one.

    Raises:
        DeniedError: this user may not ask it.
    """
    return fingerprint in (control.status(places) or {}).get("certificates", ())


def _installs(places: Places, server: ServerId) -> bool:
    """Whether the proxy says so: a look is no call that fails, in its log and its metrics.

    No, where this user may not ask it; then a call tells.
    """
    try:
        found = control.status(places) or {}
    except DeniedError:
        return False
    states = {row["instance"]: row["state"] for row in found.get("servers", ())}
    return states.get(server.instance) == State.INSTALLING


def _word(answer: dict[str, Any]) -> str | None:
    """The stable word of an error."""
    error = answer.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    word = data.get("code") if isinstance(data, dict) else None
    return word if isinstance(word, str) else None


def _arguments(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise UsageError(f"JSON: {error}; allowed is an object of arguments") from error
    if not isinstance(arguments, dict):
        raise UsageError('JSON: allowed is an object of arguments, such as {"path": "/srv"}')
    return arguments


def _token(args: argparse.Namespace, places: Places, server: ServerId) -> str:
    if args.token_file:
        try:
            return read_token(Path(args.token_file))
        except FileNotFoundError as error:
            raise MissingError(f"{args.token_file}: no such file") from error
    if token := os.environ.get(ENV_TOKEN):
        return token
    file = header_file(places, server)
    try:
        return read_token(file)
    except FileNotFoundError as error:
        known_server(places, server)
        hint = f"`mcp-bridge token new {server} --write-header` makes it"
        raise MissingError(f"{file}: no such file; {hint}") from error


def _shown(answer: dict[str, Any], *, quiet: bool) -> int:
    """Print what came back; the exit status that says how it went."""
    error = answer.get("error")
    if isinstance(error, dict):
        word = _word(answer)
        if not quiet:
            cause = f", {word}" if word is not None else ""
            note(f"{error.get('message')} ({error.get('code')}{cause})")
        return UnavailableError.exit_code if word in _UNAVAILABLE else FAILED
    result = answer.get("result")
    if not isinstance(result, dict):
        note("the result is no object")
        return FAILED
    if result.get("resultType", "complete") != "complete":
        note(f"the tool wants more ({result['resultType']}), which this command cannot give")
        return FAILED
    failed = result.get("isError") is True
    if not quiet:
        for line in _contents(result):
            print(printable(line), file=sys.stderr if failed else sys.stdout)
    return FAILED if failed else 0


def _contents(result: dict[str, Any]) -> list[str]:
    contents = result.get("content")
    lines = [_content(item) for item in contents if isinstance(item, dict)] if contents else []
    if not lines and "structuredContent" in result:
        lines.append(json.dumps(result["structuredContent"], ensure_ascii=False))
    return lines


def _content(item: dict[str, Any]) -> str:
    if item.get("type") == "text":
        return str(item.get("text", ""))
    if isinstance(item.get("data"), str):
        return f"[{item.get('type')} {item.get('mimeType', '')}, {len(item['data'])} characters]"
    return json.dumps(item, ensure_ascii=False)
