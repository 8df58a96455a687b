"""The endpoint in the handshake era: initialize, sessions, POST, GET, DELETE (to 2025-11-25)."""

import asyncio
from typing import Any

from aiohttp import web

from autobot_mcp_bridge.channels.backlog import Room
from autobot_mcp_bridge.channels.channel import KEEP_ALIVE
from autobot_mcp_bridge.model.errors import INVALID_PARAMS, INVALID_REQUEST, CallError, Cause
from autobot_mcp_bridge.model.versions import BATCH_VERSION, HANDSHAKE, SUPPORTED, Era
from autobot_mcp_bridge.policy.audit import outcome
from autobot_mcp_bridge.policy.audit.record import CallRecord
from autobot_mcp_bridge.policy.audit.trail import AuditTrail
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.proxy.incoming import (
    Accepts,
    Incoming,
    Refusal,
    accepts_of,
    read_message,
    single,
)
from autobot_mcp_bridge.proxy.peers import Connection
from autobot_mcp_bridge.proxy.recording import SESSION_HEADER, begin
from autobot_mcp_bridge.proxy.replies import (
    NULL,
    call_error_body,
    call_error_reply,
    error_reply,
    json_reply,
)
from autobot_mcp_bridge.proxy.served import Served
from autobot_mcp_bridge.proxy.streams import answer, event, tell
from autobot_mcp_bridge.sessions.session import Session

VERSION_HEADER = "MCP-Protocol-Version"
LAST_EVENT_HEADER = "Last-Event-ID"
SESSION_UNKNOWN = -32001  # what the TypeScript SDK sends; the specification names no code
# A call without an answer for so many seconds gets a stream, where that begins with an id: from then
# on its client may lose the connection. The channel looks once a second.
STREAM_AFTER = 2.0
# Messages in one batch of a 2025-03-26 client.
MAX_BATCH = 64


async def post(
    request: web.BaseRequest,
    served: Served,
    principal: Principal,
    incoming: Incoming,
    accepts: Accepts,
    record: CallRecord,
) -> web.StreamResponse:
    """One message of a handshake client."""
    client_id = incoming.client_id
    check_version(request, client_id or NULL)
    if incoming.method == "initialize" and client_id is not None:
        return await _initialize(request, served, principal, incoming, accepts, record)
    session = find_session(request, served, principal, client_id or NULL)
    if client_id is None:
        record.passes(incoming.message)
        await _take(served, session, incoming)
        return web.Response(status=202)
    try:
        record.check()
        record.passes(incoming.message)
        begun = await served.conversations.begin(
            session, incoming.message, client_id, streamable=accepts.stream
        )
    except CallError as error:
        record.failed(error)
        return _in_form(call_error_reply(error, client_id), accepts)
    incoming.forget()
    if isinstance(begun, bytes):
        record.ok()
        return _in_form(json_reply(begun), accepts)
    if session.primed:
        begun.call.touched -= KEEP_ALIVE - STREAM_AFTER
    sessions = served.conversations.sessions
    return await answer(request, begun, accepts, record, modern=False, sessions=sessions)


async def post_batch(
    request: web.BaseRequest,
    served: Served,
    principal: Principal,
    documents: list[Any],
    trail: AuditTrail,
) -> web.StreamResponse:
    """A batch: every request in it answered at 2025-03-26 (A12), refused later (A11)."""
    check_version(request, NULL)
    session = find_session(request, served, principal, NULL)
    if session.version != BATCH_VERSION:
        text = f"batches exist at {BATCH_VERSION} only; this session speaks {session.version}"
        raise Refusal(error_reply(400, INVALID_REQUEST, text))
    if not 0 < len(documents) <= MAX_BATCH:
        text = f"a batch holds 1 to {MAX_BATCH} messages"
        raise Refusal(error_reply(400, INVALID_REQUEST, text))
    messages = [read_message(document) for document in documents]
    if any(incoming.method == "initialize" for incoming in messages):
        raise Refusal(error_reply(400, INVALID_REQUEST, "initialize is not for batches"))
    waiting: list[asyncio.Task[bytes]] = []
    room = Room(served.spec.caps.line)
    async with asyncio.TaskGroup() as group:
        for incoming in messages:
            if incoming.client_id is not None:
                record = begin(trail, request, served, principal, incoming, Era.HANDSHAKE.value)
                one = _one_of_batch(served, session, incoming, room, record)
                waiting.append(group.create_task(one))
        await asyncio.sleep(0)  # each has begun, so that a cancellation beside it finds it
        for incoming in messages:
            if incoming.client_id is None:
                await _take(served, session, incoming)
    if not waiting:
        return web.Response(status=202)
    return json_reply(b"[" + b",".join(task.result() for task in waiting) + b"]")


async def _one_of_batch(
    served: Served, session: Session, incoming: Incoming, room: Room, record: CallRecord
) -> bytes:
    """The answer to one of them; all together have no more room than one line of a server."""
    client_id = incoming.client_id or NULL
    with record:
        try:
            record.check()
            record.passes(incoming.message)
            begun = await served.conversations.begin(
                session, incoming.message, client_id, streamable=False
            )
            found = None
            if isinstance(begun, bytes):
                body = begun
            else:
                try:
                    found = await begun.call.result()
                    body = begun.encode(found)[1]
                finally:
                    begun.close()
            room.used += len(body)
            if room.used > room.limit:
                text = f"the answers of the batch have more than {room.limit} bytes together"
                raise CallError(Cause.ANSWER_TOO_LARGE, text)
        except CallError as error:
            record.failed(error)
            return call_error_body(error, client_id)
        if found is None:
            record.ok()
        else:
            record.answered(found)
        return body


async def get(request: web.BaseRequest, served: Served, principal: Principal) -> web.StreamResponse:
    """The session's own stream, or, with the id of an event, the one that has made it (C8)."""
    if not accepts_of(request).stream:
        return error_reply(406, INVALID_REQUEST, "Accept must allow text/event-stream")
    check_version(request, NULL)
    session = find_session(request, served, principal, NULL)
    event_id = single(request, LAST_EVENT_HEADER)
    if event_id is not None:
        return await _resume(request, session, event_id)
    reader = session.outbox.reader
    if reader is not None and not reader.peer.lost():
        reader.ask()
        refusal = error_reply(409, INVALID_REQUEST, "the session has a stream already")
        refusal.headers["Retry-After"] = "1"
        return refusal
    return await tell(request, session, session.outbox.read(None, Connection(request)))


async def _resume(request: web.BaseRequest, session: Session, event_id: str) -> web.StreamResponse:
    """What came after an event, on whichever stream, for a client whose connection broke."""
    try:
        stream, place = session.streams.find(event_id)
        reader = stream.read(place, Connection(request))
    except LookupError:
        text = f"{LAST_EVENT_HEADER}: no such event is kept; what came after it may be lost"
        return error_reply(400, INVALID_REQUEST, text)
    return await tell(request, session, reader)


async def delete(
    request: web.BaseRequest, served: Served, principal: Principal
) -> web.StreamResponse:
    """The client ends its session (B6)."""
    check_version(request, NULL)
    served.conversations.sessions.end(find_session(request, served, principal, NULL))
    return web.Response(status=204)


async def _initialize(
    request: web.BaseRequest,
    served: Served,
    principal: Principal,
    incoming: Incoming,
    accepts: Accepts,
    record: CallRecord,
) -> web.StreamResponse:
    client_id = incoming.client_id or NULL
    if SESSION_HEADER in request.headers:
        find_session(request, served, principal, client_id)
        text = "the session is initialized already"
        raise Refusal(error_reply(400, INVALID_REQUEST, text, client_id=client_id))
    if not isinstance(incoming.params.get("protocolVersion"), str):
        text = "params.protocolVersion must be a string"
        raise Refusal(error_reply(400, INVALID_PARAMS, text, client_id=client_id))
    record.passes(incoming.message)
    try:
        session, body = await served.conversations.initialize(
            principal, incoming.message, client_id
        )
    except CallError as error:
        record.failed(error)
        return _in_form(call_error_reply(error, client_id), accepts)
    record.ok()
    reply = _in_form(json_reply(body), accepts)
    if session is not None:
        reply.headers[SESSION_HEADER] = session.id
    return reply


async def _take(served: Served, session: Session, incoming: Incoming) -> None:
    """A notification or response."""
    if incoming.method is None:
        await served.conversations.respond(session, incoming.message)
    else:
        served.conversations.tell(session, incoming.message)


def _in_form(reply: web.Response, accepts: Accepts) -> web.Response:
    """An answer that was there at once, as a stream of one event for who takes nothing else."""
    if accepts.json or reply.status != 200 or not isinstance(reply.body, bytes):
        return reply
    return web.Response(body=event(reply.body), content_type="text/event-stream")


def check_version(request: web.BaseRequest, client_id: bytes) -> None:
    """Refuse a version that is not served (B9); none is fine (B10)."""
    version = single(request, VERSION_HEADER)
    if version is not None and version not in HANDSHAKE:
        text = f"unsupported {VERSION_HEADER}; supported are {', '.join(SUPPORTED)}"
        raise Refusal(error_reply(400, INVALID_REQUEST, text, client_id=client_id))


def find_session(
    request: web.BaseRequest, served: Served, principal: Principal, client_id: bytes
) -> Session:
    """The caller's session: 400 without an id (B3), 404 for one that is not his (B4, B5)."""
    session_id = single(request, SESSION_HEADER)
    if session_id is None:
        text = f"{SESSION_HEADER} is required; initialize first"
        raise Refusal(error_reply(400, INVALID_REQUEST, text, client_id=client_id))
    session = served.conversations.sessions.find(session_id, principal)
    if session is None:
        reply = error_reply(404, SESSION_UNKNOWN, "session not found", client_id=client_id)
        raise Refusal(reply, outcome.SESSION_UNKNOWN)
    return session
