"""A server that takes all that it may have: of its CPU, or of its memory, for some seconds.

`burn` has more processes spin than its quota lets run; `fill` takes MiB and gives them back, again
and again. They answer at the end, with the seconds of CPU that it took, or how often it was full.
"""

import json
import os
import time
from typing import Any

import stdio

TOOLS = [
    stdio.tool("burn", seconds="number", processes="integer"),
    stdio.tool("fill", seconds="number", mib="integer"),
]


def burn(seconds: float, processes: int) -> float:
    until, before = time.monotonic() + seconds, os.times()
    children = []
    for _ in range(processes):
        if (child := os.fork()) == 0:
            while time.monotonic() < until:
                pass
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return os.times().children_user - before.children_user


def fill(seconds: float, mib: int) -> int:
    until, times = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        # Of ones, so that it is resident; as one piece, so that it goes back to the kernel.
        bytearray(b"\1") * (mib << 20)
        times += 1
    return times


def call(ident: Any, name: str, arguments: dict[str, Any]) -> None:
    tool = {"burn": burn, "fill": fill}[name]
    stdio.text(ident, json.dumps(tool(**arguments)))


for message in stdio.messages():
    method = message.get("method")
    if method == "initialize":
        stdio.result(message["id"], stdio.initialize_result(message, {"tools": {}}))
    elif method == "tools/list":
        stdio.result(message["id"], {"tools": TOOLS})
    elif method == "tools/call":
        call(message["id"], message["params"]["name"], message["params"]["arguments"])
