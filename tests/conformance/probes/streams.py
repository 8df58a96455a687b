"""M: response streams of 2026-07-28: listening, and leaving."""

import asyncio
from contextlib import AsyncExitStack

from conformance.probing import WITHIN, kind, opened, probe, slept
from support.client import META

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
WANTED = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
IDENT = "listen-é"


def subscription(message):
    return ((message.get("params") or {}).get("_meta") or {}).get(META + "subscriptionId")


@probe(
    "M15",
    "subscriptions/listen: acknowledged first, with the request's own id",
    "200 sse ack=True own-id=True",
    shows="E15",
)
async def _(peer):
    async with peer.modern() as client:
        message = client.request_of("subscriptions/listen", WANTED, IDENT)
        async with opened(client, message) as stream:
            first = (await stream.event(within=WITHIN) or {}) if kind(stream) == "sse" else {}
            acknowledged = first.get("method") == ACKNOWLEDGED
            own = subscription(first) == IDENT
            return f"{stream.status} {kind(stream)} ack={acknowledged} own-id={own}"


@probe(
    "M16",
    "two listeners with equal ids: each is told of each change once, with its own id",
    "tools,prompts / tools,prompts",
    shows="E15",
)
async def _(peer):
    async with AsyncExitStack() as stack:
        streams = []
        for client in (peer.modern(), peer.modern()):
            message = client.request_of("subscriptions/listen", WANTED, 50)
            streams.append(await stack.enter_async_context(opened(client, message)))
        if any(kind(stream) != "sse" for stream in streams):
            return " / ".join(f"{stream.status} {kind(stream)}" for stream in streams)
        for stream in streams:
            await stream.until(ACKNOWLEDGED, within=WITHIN)
        caller = await stack.enter_async_context(peer.modern())
        await caller.call("test_trigger_tool_change")
        await caller.call("test_trigger_prompt_change")
        heard = [[await stream.event(within=WITHIN) for _ in range(2)] for stream in streams]
        return " / ".join(",".join(map(change, events)) for events in heard)


def change(message):
    if message is None or subscription(message) != 50:
        return "foreign"
    return message["method"].split("/")[1]


@probe("M28", "closing the response stream cancels the call", "cancelled=True", shows="E14")
async def _(peer):
    async with peer.modern() as client, peer.modern() as other:
        message = client.call_of("gw_sleep", {"seconds": 60, "tag": "M28"}, 80)
        call = asyncio.create_task(client.send(message, within=WITHIN))
        started = await slept(other, "M28", "started")
        call.cancel()  # which closes its connection
        await asyncio.gather(call, return_exceptions=True)
        return f"cancelled={started and await slept(other, 'M28', 'cancelled')}"
