"""The egress proxy as a process on this machine's loopback, with names of a test's own.

    egress_main.py DIRECTORY    # egress.json, names.json and limits.json; everything it makes

names.json has for each name a list of lists of addresses: one for each lookup, the last one again
and again. 127.0.0.2 to 127.0.0.9 and ::1 count as public here, since nothing else can be reached.
"""

import asyncio
import ipaddress
import json
import logging
import socket
import sys
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.egress import resolver
from autobot_mcp_bridge.egress.limits import Limits
from autobot_mcp_bridge.egress.service import Files, run

directory = Path(sys.argv[1])
is_public = resolver.is_public
asked: dict[str, int] = {}
PUBLIC: set[object] = {ipaddress.ip_address(f"127.0.0.{last}") for last in range(2, 10)}
PUBLIC.add(ipaddress.ip_address("::1"))


def is_public_here(address: Any) -> bool:
    return address in PUBLIC or is_public(address)


def look_up(host: str, port: int, **_: Any) -> list[Any]:
    answers = json.loads((directory / "names.json").read_text(encoding="utf-8"))
    if host not in answers:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    number = asked[host] = asked.get(host, -1) + 1
    (directory / f"asked-{host}").write_text(str(number + 1), encoding="utf-8")
    found = answers[host][min(number, len(answers[host]) - 1)]
    if found == "silence":
        (directory / "answer").open(encoding="utf-8").close()  # a FIFO: for as long as a test wants
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    return [
        (socket.AF_INET6 if ":" in text else socket.AF_INET, 0, 0, "", (text, port))
        for text in found
    ]


resolver.is_public = is_public_here
resolver.socket.getaddrinfo = look_up  # type: ignore[assignment]
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
limits = Limits(**json.loads((directory / "limits.json").read_text(encoding="utf-8")))
asyncio.run(run(Files(directory / "egress.json", directory), limits))
