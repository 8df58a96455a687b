"""Drive the official Python client over stdio: COMMAND MODE CALLS, prints one JSON line.

COMMAND is a list of words, CALLS a list of pairs of a tool and its arguments; both are JSON.
"""

import json
import os
import sys

import anyio
from mcp import types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

DEADLINE = 60.0  # seconds for the whole conversation


async def converse(command, mode, calls):
    seen = {"texts": [], "asked": [], "progress": 0}

    async def on_progress(done, total, message):
        seen["progress"] += 1

    async def on_question(context, params):
        seen["asked"].append("elicitation")
        filled = {"username": "me", "email": "m@e", "name": "me"}
        return types.ElicitResult(action="accept", content=filled)

    async def on_sampling(context, params):
        seen["asked"].append("sampling")
        content = types.TextContent(type="text", text="Paris")
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async def on_roots(context):
        seen["asked"].append("roots")
        return types.ListRootsResult(roots=[types.Root(uri="file:///srv")])

    word, *words = command
    server = StdioServerParameters(command=word, args=words, env=dict(os.environ))
    client = Client(
        server,
        mode=mode,
        elicitation_callback=on_question,
        sampling_callback=on_sampling,
        list_roots_callback=on_roots,
    )
    async with client:
        seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        for tool, arguments in calls:
            result = await client.call_tool(tool, arguments, progress_callback=on_progress)
            seen["texts"].append(result.content[0].text)
        return {**seen, "version": client.protocol_version}


async def main():
    command, mode, calls = sys.argv[1:]
    with anyio.fail_after(DEADLINE):
        seen = await converse(json.loads(command), mode, json.loads(calls))
    print(json.dumps(seen))


anyio.run(main)
