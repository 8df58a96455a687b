"""The stream of a modern client that listens for changes (26 basic/patterns/subscriptions)."""

from aiohttp import web

from autobot_mcp_bridge.channels.channel import KEEP_ALIVE
from autobot_mcp_bridge.proxy.streams import COMMENT, event, stream_headers
from autobot_mcp_bridge.sessions.listeners import Listener


async def listen(request: web.BaseRequest, listener: Listener) -> web.StreamResponse:
    """The acknowledgement, changes as they come, and a closing result if the server ends it (E16)."""
    listener.outbox.taken = True
    try:
        response = web.StreamResponse(headers=stream_headers(request))
        await response.prepare(request)
        await response.write(event(listener.acknowledgement()))
        while True:
            try:
                message = await listener.outbox.next(KEEP_ALIVE)
            except EOFError:
                await response.write(event(listener.farewell()))
                await response.write_eof()
                return response
            await response.write(COMMENT if message is None else event(message))
    finally:
        listener.outbox.release()
