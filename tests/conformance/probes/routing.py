"""L: what belongs to one session, or one call, never reaches another."""

import asyncio
import json

from conformance.probing import (
    LISTEN,
    WITHIN,
    answer,
    count,
    kind,
    opened,
    probe,
    said,
    short,
    slept,
    starts,
)

PROGRESS = "notifications/progress"
ELICITATION = "elicitation/create"


@probe(
    "L27",
    "equal request ids and progress tokens in two sessions: nothing crosses",
    "own=3/3 all=3/3 answers=2",
    shows="A16 D1",
)
async def _(peer):
    async with peer.session() as one, peer.session() as other:
        both = await asyncio.gather(*map(with_progress, (one, other)))
        own = [sum(token == 77 for token in tokens(response)) for response in both]
        every = [count(response, PROGRESS) for response in both]
        answers = sum("result" in answer(response, 9) for response in both)
        return f"own={own[0]}/{own[1]} all={every[0]}/{every[1]} answers={answers}"


async def with_progress(client):
    return await client.send(client.call_of("test_tool_with_progress", {}, 9, 77))


def tokens(response):
    return [m["params"]["progressToken"] for m in response.messages if m.get("method") == PROGRESS]


@probe(
    "L28",
    "elicitation reaches only the session whose call asked, and its answer gets back",
    "asker=1 other=0 done=True",
    shows="D3",
)
async def _(peer):
    async with peer.session() as asker, peer.session() as other:
        message = asker.call_of("test_elicitation", {"message": "who?"}, 4)
        async with opened(other, **LISTEN) as listening:
            async with opened(asker, message) as stream:
                asked, done = await elicited(asker, stream)
            await other.delete()  # which ends its stream
            heard = [event async for event in events(listening)]
        foreign = sum(event.get("method") == ELICITATION for event in heard)
        return f"asker={asked} other={foreign} done={done}"


async def elicited(client, stream):
    """Answer what the call asks; how often it asked, and whether it got that answer."""
    asked, done = 0, False
    async for event in events(stream):
        if event.get("method") == ELICITATION:
            asked += 1
            filled = {"username": "me", "email": "m@e"}
            accepted = {"action": "accept", "content": filled}
            await client.send({"jsonrpc": "2.0", "id": event["id"], "result": accepted})
        elif event.get("id") == 4:
            done = "m@e" in said(event)
    return asked, done


async def events(stream):
    while kind(stream) == "sse" and (event := await stream.event(within=WITHIN)) is not None:
        yield event


@probe("L30", "notifications/cancelled reaches the server", "202 empty cancelled=True", shows="D2")
async def _(peer):
    async with peer.session() as session:
        message = session.call_of("gw_sleep", {"seconds": 60, "tag": "L30"}, 60)
        call = asyncio.create_task(session.send(message, within=WITHIN))
        try:
            await slept(session, "L30", "started")
            cancelled = await session.notify("notifications/cancelled", {"requestId": 60})
            seen = await slept(session, "L30", "cancelled")
        finally:
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        return f"{short(cancelled)} cancelled={seen}"


@probe(
    "L31",
    "a slow call holds up no other of the same session",
    "meanwhile=True slow=slept",
    shows="D5",
)
async def _(peer):
    async with peer.session() as session:
        message = session.call_of("gw_sleep", {"seconds": 1, "tag": "L31"}, 62)
        call = asyncio.create_task(session.send(message, within=WITHIN))
        await slept(session, "L31", "started")
        quick = json.loads(await session.text("gw_echo", value="q")) == "q" and not call.done()
        return f"meanwhile={quick} slow={said(answer(await call, 62))}"


async def asked_logs(peer, level):
    async with peer.modern() as client:
        meta = {} if level is None else {"io.modelcontextprotocol/logLevel": level}
        params = {"name": "test_tool_with_logging", "arguments": {}, "_meta": meta}
        response = await client.send(client.request_of("tools/call", params, 12))
        return count(response, "notifications/message")


@probe(
    "M18",
    "no log notifications unless the request asked for them",
    starts("unasked=0 "),
    shows="E18",
)
async def _(peer):
    return f"unasked={await asked_logs(peer, None)} asked={await asked_logs(peer, 'debug')}"


@probe(
    "M31",
    "one request with a log level beside one without: logs only where asked",
    starts("silent=0 "),
    shows="E18",
)
async def _(peer):
    asked, silent = await asyncio.gather(asked_logs(peer, "debug"), asked_logs(peer, None))
    return f"silent={silent} asked={asked}"


@probe(
    "M17",
    "equal ids and progress tokens of two modern clients: each has its own",
    "one=3+1 other=3+1",
    shows="D1 E17",
)
async def _(peer):
    async with peer.modern() as one, peer.modern() as other:
        both = await asyncio.gather(*map(with_progress, (one, other)))
        shown = [f"{tokens(found).count(77)}+{int('result' in answer(found, 9))}" for found in both]
        return f"one={shown[0]} other={shown[1]}"


@probe(
    "M24",
    "modern and handshake clients at once on one URL",
    "modern=True handshake=True",
    shows="E1",
)
async def _(peer):
    async with peer.session() as session, peer.modern() as modern:
        found = await asyncio.gather(modern.tools(), session.tools())
        return f"modern={bool(found[0])} handshake={bool(found[1])}"
