"""Drive fastmcp's client: URL MODE HEADERS TOOL ARGUMENTS, prints one JSON line."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

DEADLINE = 40.0  # seconds for the whole conversation


async def converse(url, mode, headers, tool, arguments):
    progress, asked = [], []

    async def on_progress(done, total, message):
        progress.append(done)

    async def on_question(message, kind, params, context):
        asked.append(message)
        return {"username": "me", "email": "m@e", "name": "me"}

    transport = StreamableHttpTransport(url, headers=headers)
    handlers = {"progress_handler": on_progress, "elicitation_handler": on_question}
    async with Client(transport, mode=mode, **handlers) as client:
        tools = await client.list_tools()
        result = await client.call_tool(tool, arguments)
        return {
            "version": client.session.protocol_version,
            "tools": [tool.name for tool in tools],
            "text": result.content[0].text,
            "progress": len(progress),
            "asked": len(asked),
        }


async def main():
    url, mode, headers, tool, arguments = sys.argv[1:]
    async with asyncio.timeout(DEADLINE):
        seen = await converse(url, mode, json.loads(headers), tool, json.loads(arguments))
    print(json.dumps(seen))


asyncio.run(main())
