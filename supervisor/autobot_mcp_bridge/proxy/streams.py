"""Answers on their way out: plain JSON when there is nothing to stream, else an event stream."""

import asyncio
from collections.abc import Mapping

from aiohttp import web

from autobot_mcp_bridge.channels.channel import KEEP_ALIVE
from autobot_mcp_bridge.model.errors import CallError
from autobot_mcp_bridge.policy.audit.record import CallRecord
from autobot_mcp_bridge.proxy.carrying import Carrier
from autobot_mcp_bridge.proxy.incoming import EVENT_STREAM, Accepts
from autobot_mcp_bridge.proxy.peers import Connection
from autobot_mcp_bridge.proxy.replies import call_error_body, call_error_reply, json_reply
from autobot_mcp_bridge.sessions.events import Reader
from autobot_mcp_bridge.sessions.exchange import Exchange
from autobot_mcp_bridge.sessions.session import Session, SessionTable

# What every answer to this request carries, event streams included.
ANSWER_HEADERS = web.RequestKey("answer_headers", Mapping[str, str])
STREAM_HEADERS = {
    "Content-Type": EVENT_STREAM,
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",  # nginx would hold events back (A17)
}
# Without an empty line: some clients take one after an id for a message without data (httpx-sse).
COMMENT = b": keep-alive\n"
# From so many bytes on an event is written in three pieces.
LARGE = 64 * 1024
# What a client whose stream ends before its answer waits before it comes back: a restart of the
# proxy takes about as long.
RETRY_MS = 1000


def stream_headers(request: web.BaseRequest) -> dict[str, str]:
    return {**STREAM_HEADERS, **request.get(ANSWER_HEADERS, {})}


def event(data: bytes, event_id: str = "") -> bytes:
    return b"".join((_head(event_id), data, b"\n\n"))


def _head(event_id: str) -> bytes:
    return (f"id: {event_id}\n" if event_id else "").encode() + b"event: message\ndata: "


async def _write(response: web.StreamResponse, data: bytes, event_id: str = "") -> None:
    if len(data) < LARGE:
        await response.write(event(data, event_id))
        return
    await response.write(_head(event_id))
    await response.write(data)  # without one more copy of it
    await response.write(b"\n\n")


def primer(reader: Reader) -> bytes:
    """An id without data, by which a client can come back before it has got anything (C7, C11)."""
    return f"id: {reader.cursor}\nretry: {RETRY_MS}\ndata:\n\n".encode()


async def answer(
    request: web.BaseRequest,
    exchange: Exchange,
    accepts: Accepts,
    record: CallRecord,
    *,
    modern: bool,
    sessions: SessionTable | None = None,
) -> web.StreamResponse:
    """Wait for a call and give its client the answer, in the form that fits.

    With `sessions`, one of which the call belongs to, its stream outlives the connection.
    """
    call = exchange.call
    carrier: Carrier | None = None
    try:
        await call.wake
        if accepts.stream and (not accepts.json or not call.done or call.events):
            if exchange.session is not None and sessions is not None:
                carrier = Carrier(exchange, exchange.session, sessions, record)
                reader = carrier.stream.read(None, Connection(request))
                return await tell(request, exchange.session, reader)
            return await _stream(request, exchange, record)
        try:
            found = await call.result()
            status, body = exchange.encode(found)
        except CallError as error:
            record.failed(error)
            return call_error_reply(error, exchange.client_id, modern=modern)
        record.answered(found)
        return json_reply(body, status)
    except (asyncio.CancelledError, ConnectionError):
        if carrier is None and not call.done:
            record.gone()
            exchange.abandon()
        raise
    finally:
        if carrier is None:
            exchange.close()


async def _stream(
    request: web.BaseRequest, exchange: Exchange, record: CallRecord
) -> web.StreamResponse:
    """Events as they come, comments while nothing comes, the answer last (C1)."""
    call = exchange.call
    response = web.StreamResponse(headers=stream_headers(request))
    await response.prepare(request)
    if not call.events and not call.done:
        await response.write(COMMENT)
    while True:
        while call.events:
            await _write(response, call.events.pop())
        if call.done:
            break
        if call.wake.done():
            call.wake = asyncio.get_running_loop().create_future()
        await call.wake
        if not call.events and not call.done:
            await response.write(COMMENT)
    try:
        found = await call.result()
        _, body = exchange.encode(found)
        record.answered(found)
    except CallError as error:
        record.failed(error)
        body = call_error_body(error, exchange.client_id)
    await _write(response, body)
    await response.write_eof()
    return response


async def tell(request: web.BaseRequest, session: Session, reader: Reader) -> web.StreamResponse:
    """A stream from the reader's place on, until it ends or the client goes."""
    try:
        response = web.StreamResponse(headers=stream_headers(request))
        await response.prepare(request)
        await response.write(primer(reader) if session.primed else COMMENT)
        while True:
            try:
                found = await reader.next(KEEP_ALIVE)
            except EOFError:
                break
            if found is None:
                await response.write(COMMENT)
            else:
                await _write(response, found[1], found[0])
        if reader.returns and session.primed:
            await response.write(primer(reader))
        await response.write_eof()
        return response
    finally:
        reader.release()
