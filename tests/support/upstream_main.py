"""The upstream program on this machine's loopback, with names of a test's own.

    upstream_main.py DIRECTORY URL…    # names.json; the rest as the program takes it

names.json has for each name a list of lists of addresses: one for each lookup, the last one again
and again. 127.0.0.2 to 127.0.0.9 count as public here, since nothing else can be reached.
"""

import ipaddress
import json
import socket
import sys
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.upstream import reach
from autobot_mcp_bridge.upstream.__main__ import main

directory = Path(sys.argv[1])
is_public = reach.is_public
asked: dict[str, int] = {}
PUBLIC: set[object] = {ipaddress.ip_address(f"127.0.0.{last}") for last in range(2, 10)}
getaddrinfo = socket.getaddrinfo


def is_public_here(address: Any) -> bool:
    return address in PUBLIC or is_public(address)


def look_up(host: str, port: int, *rest: Any, **more: Any) -> list[Any]:
    answers = json.loads((directory / "names.json").read_text(encoding="utf-8"))
    if host not in answers:
        return getaddrinfo(host, port, *rest, **more)  # numbers, and what this host knows
    number = asked[host] = asked.get(host, -1) + 1
    found = answers[host][min(number, len(answers[host]) - 1)]
    return [
        (
            socket.AF_INET6 if ":" in text else socket.AF_INET,
            socket.SOCK_STREAM,
            6,
            "",
            (text, port),
        )
        for text in found
    ]


reach.is_public = is_public_here
socket.getaddrinfo = look_up  # type: ignore[assignment]
sys.exit(main(sys.argv[2:]))
