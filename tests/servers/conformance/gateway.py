"""Tools for tests of a gateway, gw_*: what the suite's own do not show."""

import asyncio
import json
import os
import sys

from call import STRING, text, tool

NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}


@tool("gw_pid", "The process's id")
async def pid(call, arguments):
    return text(str(os.getpid()))


@tool("gw_echo", "Returns its argument as JSON", {"value": {}})
async def echo(call, arguments):
    return text(json.dumps(arguments.get("value"), ensure_ascii=False))


@tool("gw_sleep", "Sleeps, and notes its tag", {"seconds": NUMBER, "tag": STRING})
async def sleep(call, arguments):
    sleeps, tag = call.server.sleeps, arguments.get("tag", "untagged")
    sleeps[tag] = "started"
    try:
        await asyncio.sleep(float(arguments.get("seconds", 1)))
    except asyncio.CancelledError:
        sleeps[tag] = "cancelled"
        raise
    sleeps[tag] = "finished"
    return text("slept")


@tool("gw_sleeps", "How each sleep of this process stands, by its tag")
async def sleeps(call, arguments):
    return text(json.dumps(call.server.sleeps))


@tool("gw_progress", "Reports progress COUNT times", {"count": INTEGER, "pause": NUMBER})
async def progress(call, arguments):
    count = int(arguments.get("count", 10))
    for number in range(count):
        call.progress(number, count)
        await asyncio.sleep(float(arguments.get("pause", 0)))
    return text("done")


@tool("gw_big", "Returns SIZE bytes of text", {"size": INTEGER})
async def big(call, arguments):
    return text("x" * int(arguments.get("size", 1 << 20)))


@tool("gw_noise", "Writes a line that is no JSON to stdout and one to stderr, then answers")
async def noise(call, arguments):
    call.server.write_line(b"this is not a protocol message")
    print("a line on stderr", file=sys.stderr, flush=True)
    return text("noisy")


@tool("gw_crash", "Ends the process at once", {"status": INTEGER})
async def crash(call, arguments):
    os._exit(int(arguments.get("status", 3)))
