"""Tools for tests of a gateway, gw_*: what the suite's own do not show."""

import asyncio
import json
import os
import sys
from pathlib import Path

from call import STRING, TOOLS, RpcError, elicit, text, tool
from call import tool as register

NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}
NAME = elicit("What is your name?", {"name": STRING}, "name")


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


@tool("gw_heard", "The methods of all messages that this process has been told")
async def heard(call, arguments):
    return text(json.dumps(call.server.heard))


@tool("gw_tell", "Sends a notification", {"method": STRING, "params": {}})
async def tell(call, arguments):
    call.server.notify(arguments["method"], arguments.get("params"))
    return text("told")


@tool("gw_update", "Tells those who subscribed to a resource that it has changed", {"uri": STRING})
async def update(call, arguments):
    call.server.updated(arguments["uri"])
    return text("updated")


@tool("gw_ask", "Sends a request to the client and returns its answer", {"method": STRING})
async def ask(call, arguments):
    request = {"method": arguments["method"], "params": {}}
    try:
        answers = await call.server.ask_all({"it": request})
    except RpcError as error:
        return text(json.dumps({"error": error.error}))
    return text(json.dumps(answers["it"]))


@tool("gw_ask_twice", "Asks for a name twice, the second time a moment later; then tells both")
async def ask_twice(call, arguments):
    first = asyncio.create_task(call.server.ask_all({"it": NAME}))
    await asyncio.sleep(0)
    second = asyncio.create_task(call.server.ask_all({"it": NAME}))
    answers = [(await each)["it"] for each in (first, second)]
    third = (await call.server.ask_all({"it": NAME}))["it"]
    return text(json.dumps([*answers, third]))


@tool("gw_withdraw", "Asks for a name, withdraws the question, and answers")
async def withdraw(call, arguments):
    asking = asyncio.create_task(call.server.ask_all({"it": NAME}))
    await asyncio.sleep(float(arguments.get("after", 0.2)))
    asking.cancel()
    call.server.notify("notifications/cancelled", {"requestId": call.server.last_asked})
    await asyncio.sleep(0)
    call.server.withdrawn += 1
    return text(f"withdrawn {call.server.withdrawn}")


@tool("gw_files", "Where it works, the mode of that, and what lies there; then leaves a file")
async def files(call, arguments):
    here = Path.cwd()
    found = {
        "cwd": str(here),
        "mode": here.stat().st_mode & 0o777,
        "files": [each.name for each in here.iterdir()],
    }
    (here / "left").write_text("x")
    return text(json.dumps(found))


@tool("gw_add_tool", "Offers one more tool, and says so")
async def add_tool(call, arguments):
    register(f"more_{len(TOOLS)}", "One more")(pid)
    call.server.changed("tools")
    return text("added")
