"""Answers on their way out: plain JSON when there is nothing to stream, else an event stream."""

import asyncio
from collections.abc import Mapping

from aiohttp import web

from autobot_mcp_bridge.channels.channel import KEEP_ALIVE
from autobot_mcp_bridge.model.errors import CallError
from autobot_mcp_bridge.proxy.counts import Counts
from autobot_mcp_bridge.proxy.incoming import EVENT_STREAM, Accepts
from autobot_mcp_bridge.proxy.replies import call_error_body, call_error_reply, json_reply
from autobot_mcp_bridge.sessions.exchange import Exchange
from autobot_mcp_bridge.sessions.outbox import Outbox

# What every answer to this request carries, event streams included.
ANSWER_HEADERS = web.RequestKey("answer_headers", Mapping[str, str])
STREAM_HEADERS = {
    "Content-Type": EVENT_STREAM,
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",  # nginx would hold events back (A17)
}
COMMENT = b": keep-alive\n\n"


def stream_headers(request: web.BaseRequest) -> dict[str, str]:
    return {**STREAM_HEADERS, **request.get(ANSWER_HEADERS, {})}


def event(data: bytes) -> bytes:
    return b"event: message\ndata: " + data + b"\n\n"


async def answer(
    request: web.BaseRequest, exchange: Exchange, accepts: Accepts, counts: Counts, *, modern: bool
) -> web.StreamResponse:
    """Wait for a call and give its client the answer, in the form that fits."""
    call = exchange.call
    try:
        await call.wake
        if accepts.stream and (not accepts.json or not call.done or call.events):
            return await _stream(request, exchange, counts)
        try:
            status, body = exchange.encode(await call.result())
        except CallError as error:
            counts.calls[error.cause.word] += 1
            return call_error_reply(error, exchange.client_id, modern=modern)
        counts.calls["ok"] += 1
        return json_reply(body, status)
    except (asyncio.CancelledError, ConnectionError):
        if not call.done:
            counts.calls["client_gone"] += 1
            exchange.abandon()
        raise
    finally:
        exchange.close()


async def _stream(
    request: web.BaseRequest, exchange: Exchange, counts: Counts
) -> web.StreamResponse:
    """Events as they come, comments while nothing comes, the answer last (C1)."""
    call = exchange.call
    response = web.StreamResponse(headers=stream_headers(request))
    await response.prepare(request)
    if not call.events and not call.done:
        await response.write(COMMENT)
    while True:
        while call.events:
            await response.write(event(call.events.pop()))
        if call.done:
            break
        if call.wake.done():
            call.wake = asyncio.get_running_loop().create_future()
        await call.wake
        if not call.events and not call.done:
            await response.write(COMMENT)
    try:
        _, body = exchange.encode(await call.result())
        counts.calls["ok"] += 1
    except CallError as error:
        counts.calls[error.cause.word] += 1
        body = call_error_body(error, exchange.client_id)
    await response.write(event(body))
    await response.write_eof()
    return response


async def listen(request: web.BaseRequest, outbox: Outbox) -> web.StreamResponse:
    """A session's GET stream, until the session ends or the client goes."""
    outbox.taken = True
    try:
        response = web.StreamResponse(headers=stream_headers(request))
        await response.prepare(request)
        await response.write(COMMENT)
        while True:
            try:
                message = await outbox.next(KEEP_ALIVE)
            except EOFError:
                await response.write_eof()
                return response
            await response.write(COMMENT if message is None else event(message))
    finally:
        outbox.release()
