"""L: the life of a session and its streams."""

import asyncio

from conformance.probes.http import ping
from conformance.probing import LISTEN, WITHIN, answer, kind, opened, probe, said, short, starts
from support.client import LATEST, dumps

PROGRESS = {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": 5}}


@probe(
    "L01",
    "initialize: a result, and a session id of visible ASCII",
    f"v={LATEST} id=visible",
    shows="B1",
)
async def _(peer):
    async with peer.session() as session:
        ident = session.session
        visible = ident is not None and all("!" <= char <= "~" for char in ident)
        shown = "none" if ident is None else "visible" if visible else "bad"
        return f"v={session.version} id={shown}"


@probe("L02", "initialize with each older version: the version answered")
async def _(peer):
    found = []
    for offered in ("2024-11-05", "2025-03-26", "2025-06-18", "1999-01-01"):
        async with peer.session(version=offered) as session:
            found.append(f"{offered}->{session.version}")
    return " ".join(found)


@probe("L03", "notifications/initialized: 202 and no body", "202 empty", shows="A14")
async def _(peer):
    async with peer.session() as session:
        return short(await session.notify("notifications/initialized"))


@probe(
    "L07", "no MCP-Protocol-Version header on a live session: accepted", starts("200"), shows="B10"
)
async def _(peer):
    async with peer.session() as session:
        return short(await session.send(ping(), headers={"MCP-Protocol-Version": None}))


@probe(
    "L13", "a batch in a session of 2025-03-26: both answered", "2025-03-26 answers=2", shows="A12"
)
async def _(peer):
    async with peer.session(version="2025-03-26") as session:
        body = dumps([ping(7), ping(8)])
        response = await session.send(body=body)
        found = response.messages[0] if kind(response) == "json" else response.messages
        idents = {one.get("id") for one in found if isinstance(one, dict) and "result" in one}
        return f"{session.version} answers={len(idents & {7, 8})}"


@probe("L16", "a second GET stream at once on one session")
async def _(peer):
    async with peer.session() as session:
        async with opened(session, **LISTEN) as first, opened(session, **LISTEN) as second:
            return f"{first.status} then {second.status} {kind(second)}"


@probe("L17", "GET with a Last-Event-ID that was never issued")
async def _(peer):
    async with peer.session() as session:
        async with opened(session, **resuming("nope-1")) as stream:
            return f"{stream.status} {kind(stream)}"


def ends_session(seen):
    first, _, then = seen.partition(" then ")
    return first.startswith("405") or (first.startswith("2") and then.startswith("404"))


@probe(
    "L18", "DELETE ends the session (2xx, or 405), then POST is 404", ends_session, shows="B4 B6"
)
async def _(peer):
    async with peer.session() as session:
        deleted = await session.delete()
        return f"{short(deleted)} then {short(await session.send(ping()))}"


@probe("L24", "initialize again inside a session")
async def _(peer):
    async with peer.session() as session:
        return short(await session.send(session.initialize_of(5)))


@probe("L26", "event streams that answer a POST carry event ids")
async def _(peer):
    async with peer.session() as session:
        response = await session.send(session.request_of("tools/call", PROGRESS, 3))
        events = [one for one in response.body.decode().split("\n\n") if one.strip()]
        marked = [one for one in events if any(x.startswith("id:") for x in one.split("\n"))]
        data = [x[5:].strip() for x in events[0].split("\n") if x.startswith("data:")]
        primed = events[0] in marked and not any(data)
        return f"{short(response)} ids={len(marked)}/{len(events)} priming={primed}"


@probe("L29", "a dropped POST stream: the call's answer can be fetched again")
async def _(peer):
    async with peer.session() as session:
        last = await first_event_id(session, session.request_of("tools/call", PROGRESS, 6))
        if last is None:
            return "no event ids"
        async with opened(session, **resuming(last)) as stream:
            if kind(stream) != "sse":
                return f"{stream.status} {kind(stream)}"
            found = await stream.until(6, within=WITHIN)
            return f"{stream.status} replayed-answer={said(found) == '5'}"


def resuming(last):
    return {"method": "GET", "headers": {**LISTEN["headers"], "Last-Event-ID": last}}


async def first_event_id(session, message):
    """Send, read up to the first event id, and leave in mid-stream."""
    connection = await session.take_connection()
    try:
        headers = session.headers(message)
        await connection.stream("POST", session.target, headers, dumps(message))
        read = b""
        async with asyncio.timeout(WITHIN):
            while piece := await connection.read_piece(chunked=True):
                read += piece
                whole = read.decode().split("\n\n")[:-1]
                idents = [x[3:].strip() for one in whole for x in one.split("\n") if x[:3] == "id:"]
                if idents:
                    return idents[0]
    finally:
        await connection.close()
    return None


@probe("L34", "do two sessions share one process, and does one keep its own?")
async def _(peer):
    async with peer.session() as one, peer.session() as other:
        pids = [
            said(answer(await s.send(s.call_of("gw_pid", {}, 1)), 1)) for s in (one, other, one)
        ]
        return f"shared={pids[0] == pids[1]} kept={pids[0] == pids[2]}"
