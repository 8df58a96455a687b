"""Drive the official Python client: URL MODE HEADERS TOOL ARGUMENTS, prints one JSON line."""

import json
import sys

import anyio
from mcp import types
from mcp.client.client import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

DEADLINE = 40.0  # seconds for the whole conversation


async def converse(url, mode, headers, tool, arguments):
    progress, asked = [], []

    async def on_progress(done, total, message):
        progress.append(done)

    async def on_question(context, params):
        asked.append(params.message)
        filled = {"username": "me", "email": "m@e", "name": "me"}
        return types.ElicitResult(action="accept", content=filled)

    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=on_question) as client:
            tools = (await client.list_tools()).tools
            result = await client.call_tool(tool, arguments, progress_callback=on_progress)
            return {
                "version": client.protocol_version,
                "tools": [tool.name for tool in tools],
                "text": result.content[0].text,
                "progress": len(progress),
                "asked": len(asked),
            }


async def main():
    url, mode, headers, tool, arguments = sys.argv[1:]
    with anyio.fail_after(DEADLINE):
        seen = await converse(url, mode, json.loads(headers), tool, json.loads(arguments))
    print(json.dumps(seen))


anyio.run(main)
