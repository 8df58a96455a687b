"""The Python SDK's own server over HTTP, on the port of argv: what strangers run remotely."""

import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("reference")
begun: list[str] = []
cancelled: list[str] = []


@server.tool()
async def add(left: int, right: int) -> int:
    return left + right


@server.tool()
async def steps(count: int, context: Context) -> str:
    for step in range(count):
        await context.report_progress(step + 1, count)
    return "done"


@server.tool()
async def wait(tag: str) -> str:
    begun.append(tag)
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        cancelled.append(tag)
        raise
    return "never"


@server.tool()
async def seen() -> str:
    return f"begun: {' '.join(begun)}; cancelled: {' '.join(cancelled)}"


server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
