"""`python -m autobot_mcp_bridge.upstream URL`: what a definition's `url` means as a command."""

import argparse
import asyncio
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from autobot_mcp_bridge.model.addresses import listed
from autobot_mcp_bridge.model.command import HEADERS
from autobot_mcp_bridge.upstream.endings import CONFIG, EndError
from autobot_mcp_bridge.upstream.program import run
from autobot_mcp_bridge.upstream.reach import Reach
from autobot_mcp_bridge.upstream.settings import MOST_BYTES, Settings
from autobot_mcp_bridge.upstream.stdio import tell

_VALUE = re.compile(r"[\x20-\x7e\t]*")
_MOST_SECRET = 16384  # bytes of a header's text


def main(argv: Sequence[str] | None = None) -> int:
    """Run until stdin ends; the exit status, by sysexits(3)."""
    parser = argparse.ArgumentParser(prog="autobot_mcp_bridge.upstream")
    parser.add_argument("url")
    parser.add_argument("--allow", action="append", help="an address or network, and no other")
    parser.add_argument("--proxy", help="who makes the connections")
    parser.add_argument("--most", type=int, default=MOST_BYTES, help="bytes of one message")
    args = parser.parse_args(argv)
    try:
        return asyncio.run(run(_settings(args, os.environ)))
    except EndError as why:
        tell(str(why))
        return why.status


def _settings(args: argparse.Namespace, environ: Mapping[str, str]) -> Settings:
    networks = None if args.allow is None else tuple(map(listed, args.allow))
    reach = Reach(networks, plain=urlsplit(args.url).scheme == "http")
    given: dict[str, Any] = json.loads(environ.get(HEADERS, "{}"))
    headers = {name: _text(name, entry, environ) for name, entry in given.items()}
    return Settings(args.url, reach, headers, args.proxy, args.most)


def _text(name: str, entry: Any, environ: Mapping[str, str]) -> str:
    """A header's text.

    Raises:
        EndError: its secret cannot be read, or is none for a header; without the secret.
    """
    if isinstance(entry, str):
        return entry
    path = environ.get(entry["variable"], "")
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_SECRET + 1)
    except OSError as error:
        raise EndError(CONFIG, f"header {name}: its secret: {error.strerror}") from None
    text = data.decode("latin-1").removesuffix("\n").removesuffix("\r")
    if not _VALUE.fullmatch(text) or not text.strip() or len(data) > _MOST_SECRET:
        clause = f"allowed is one line of ASCII, at most {_MOST_SECRET} bytes"
        raise EndError(CONFIG, f"header {name}: its secret is not for a header; {clause}")
    return str(entry.get("prefix", "")) + text


if __name__ == "__main__":
    sys.exit(main())
