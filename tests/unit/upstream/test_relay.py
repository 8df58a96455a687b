"""Messages of a stdio client against a far end that does as it is told (support/far.py)."""

import asyncio
import json

import pytest
from aiohttp import web

from autobot_mcp_bridge.model.versions import MODERN
from autobot_mcp_bridge.upstream.relay import MOST_OPEN
from support.far import OPENING, OWN_META, never, stream
from support.waiting import eventually

# ---- the handshake session ----


async def test_what_follows_initialize_carries_session_and_version(far, talk):
    await talk.ask("initialize", OPENING)
    assert not {"Mcp-Session-Id", "MCP-Protocol-Version"} & far.headers.keys()
    await talk.ask("tools/list", ident=2)

    assert far.headers["Mcp-Session-Id"] == "session-1"
    assert far.headers["MCP-Protocol-Version"] == "2025-11-25"
    assert far.headers["X-Own"] == "a"
    assert far.headers["Accept"] == "application/json, text/event-stream"


async def test_the_sessions_stream_is_opened_once_and_the_session_deleted(far, talk):
    await talk.open()
    await talk.take(method="notifications/initialized")
    await eventually(lambda: "GET" in far.methods)
    await talk.relay.close()

    assert far.methods.count("GET") == 1
    assert far.methods[-1] == "DELETE"


async def test_a_message_passes_byte_for_byte_both_ways(far, talk):
    odd = (
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"b":1e400,"a":[12345678901234567890123]}}'
    )
    back = b'{"jsonrpc":"2.0","result":{"n":1.0,"t":"\\ud800"},"id":1}'
    bodies = []

    async def mirror(request, _):
        bodies.append(await request.read())
        return await stream(request, b"data: " + back + b"\n\n")

    far.answers["x"] = mirror
    await talk.relay.take(odd)
    await eventually(lambda: talk.out.lines)

    assert bodies == [odd]
    assert talk.out.lines == [back]


async def test_a_body_with_line_breaks_becomes_one_line(far, talk):
    async def pretty(request, _):
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"a": "b c"}}, indent=1)
        return web.Response(text=text, content_type="application/json")

    far.answers["x"] = pretty

    assert (await talk.ask("x"))["result"] == {"a": "b c"}


async def test_a_question_of_the_far_server_is_answered_in_its_session(far, talk):
    await talk.open()
    asked = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}}
    answered = asyncio.Event()

    async def asks(request, message):
        data = json.dumps(asked).encode()
        reply = await stream(request, b"data: " + data + b"\n\n")
        await answered.wait()
        last = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}).encode()
        await reply.write(b"data: " + last + b"\n\n")
        return reply

    far.answers["tools/call"] = asks
    await talk.take(id=2, method="tools/call", params={"name": "x"})
    await eventually(lambda: asked in talk.out.messages)
    await talk.take(id="q", result={"action": "accept"})
    await eventually(lambda: far.seen[-1].get("result"))
    answered.set()

    assert far.headers["Mcp-Session-Id"] == "session-1"
    assert (await talk.out.answer(2))["result"] == {}


async def test_a_session_that_is_not_known_ends_the_program_with_a_status_while_somebody_waits(
    far, talk
):
    await talk.open()
    far.status = 404
    lost = await talk.ask("tools/list", ident=2)

    assert "no longer knows this session" in lost["error"]["message"]
    assert (await talk.relay.ended).status == 75
    await talk.relay.close()
    assert "DELETE" not in far.methods


async def test_a_session_that_is_not_known_while_nobody_waits_is_no_failure(far, talk):
    async def gone(request, _):
        return web.Response(status=404)

    far.get = gone
    await talk.open()

    assert (await talk.relay.ended).status == 0


# ---- answers that are none ----


async def test_what_the_far_end_asks_to_wait_for_is_told_in_seconds(far, talk):
    await talk.open()
    far.status, far.more = 429, {"Retry-After": "7"}
    busy = await talk.ask("tools/call", {"name": "x"}, 2)
    far.status = 200

    assert busy["error"]["data"] == {"httpStatus": 429, "retryAfter": 7}
    assert "7 s" in busy["error"]["message"]
    assert far.methods_of().count("tools/call") == 1
    assert "result" in await talk.ask("tools/call", {"name": "x"}, 3)


async def test_the_far_ends_own_error_is_passed_on_whatever_its_status(far, talk):
    await talk.open()
    error = {"code": -32000, "message": "no room", "data": {"code": "queue_full"}}

    async def full(request, _):
        body = {"jsonrpc": "2.0", "id": None, "error": error}
        return web.json_response(body, status=503, headers={"Retry-After": "3"})

    far.answers["tools/call"] = full
    told = (await talk.ask("tools/call", {"name": "x"}, 2))["error"]

    assert told == {**error, "data": {"code": "queue_full", "retryAfter": 3}}


@pytest.mark.parametrize(
    ("headers", "body", "word"),
    [
        ({"Content-Type": "text/html"}, b"<html>", "text/html"),
        ({"Content-Type": "application/json"}, b"x" * 6000, "more than 5000 bytes"),
        ({"Content-Type": "application/json"}, b"[1]", "before the answer"),
        ({"Content-Type": "text/event-stream"}, b"data: " + b"x" * 6000, "more than 5000"),
        ({"Content-Type": "application/json", "Content-Encoding": "br"}, b"x", "encoded"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_an_error_of_that_call(
    far, talk, headers, body, word
):
    await talk.open()

    async def odd(request, _):
        return web.Response(body=body, headers=headers)

    far.answers["tools/call"] = odd
    told = await talk.ask("tools/call", {"name": "x"}, 2)
    del far.answers["tools/call"]

    assert word in told["error"]["message"]
    assert "result" in await talk.ask("tools/call", {"name": "x"}, 3)


# ---- cancellation ----


async def test_a_cancellation_follows_its_request_in_the_handshake_era(far, talk):
    await talk.open()

    async def hangs(request, _):
        return await never(request)

    far.answers["tools/call"] = hangs
    await talk.take(id=2, method="tools/call", params={"name": "x"})
    await talk.take(method="notifications/cancelled", params={"requestId": 2})
    await eventually(lambda: far.methods_of()[-1] == "notifications/cancelled")

    assert far.methods_of()[-2] == "tools/call"
    await talk.take(method="notifications/cancelled", params={"requestId": "2"})
    assert "result" in await talk.ask("tools/list", ident=2), "its id is free again"
    assert far.methods_of().count("notifications/cancelled") == 1


async def test_a_cancellation_closes_the_stream_at_2026_07_28(far, talk):
    gone = asyncio.Event()

    async def hangs(request, _):
        try:
            return await never(request)
        finally:
            gone.set()

    far.answers["tools/call"] = hangs
    await talk.take(id=2, method="tools/call", params={"name": "x", "_meta": OWN_META})
    await eventually(lambda: far.seen)
    await talk.take(method="notifications/cancelled", params={"requestId": 2})
    await eventually(gone.is_set)

    assert "notifications/cancelled" not in far.methods_of()


# ---- 2026-07-28 ----


async def test_a_modern_request_repeats_in_headers_what_its_body_says(far, talk):
    schema = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "plain": {"type": "string"},
        },
    }

    async def tools(request, message):
        return far.answer(message, {"tools": [{"name": "grüß", "inputSchema": schema}]})

    far.answers["tools/list"] = tools
    await talk.open()
    await talk.modern("tools/list")
    arguments = {"region": "eu west", "count": 3, "plain": "p"}
    await talk.modern("tools/call", {"name": "grüß", "arguments": arguments}, 2)

    assert far.headers["MCP-Protocol-Version"] == MODERN
    assert far.headers["Mcp-Method"] == "tools/call"
    assert far.headers["Mcp-Name"] == "=?base64?Z3LDvMOf?="
    assert far.headers["Mcp-Param-Region"] == "eu west"
    assert far.headers["Mcp-Param-Count"] == "3"
    assert "Mcp-Session-Id" not in far.headers


async def test_headers_that_are_not_known_yet_are_asked_for_once(far, talk):
    schema = {"properties": {"r": {"type": "string", "x-mcp-header": "R"}}}

    async def call(request, message):
        if request.headers.get("Mcp-Param-R") == "x":
            return far.answer(message, {"content": []})
        error = {"code": -32020, "message": "Mcp-Param-R is missing"}
        body = {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return web.json_response(body, status=400)

    async def tools(request, message):
        return far.answer(message, {"tools": [{"name": "t", "inputSchema": schema}]})

    far.answers |= {"tools/call": call, "tools/list": tools}
    right = {"name": "t", "arguments": {"r": "x"}}
    wrong = {"name": "t", "arguments": {"r": "y"}}

    assert (await talk.modern("tools/call", right))["result"] == {"content": []}
    assert (await talk.modern("tools/call", wrong, 2))["error"]["code"] == -32020
    assert len(talk.out.lines) == 2, "what was asked for by itself is not the client's"


# ---- what is no message ----


async def test_a_line_that_is_no_message_is_answered_and_sent_nowhere(far, talk):
    for line in (b"no json\n", b"[]\n", b'{"id":1}\n', b"\n"):
        await talk.relay.take(line)

    assert [m["error"]["code"] for m in talk.out.messages] == [-32700, -32600, -32700]
    assert far.seen == []


async def test_an_id_in_use_and_more_requests_than_are_carried_are_refused(far, talk):
    async def hangs(request, _):
        return await never(request)

    far.answers["tools/call"] = hangs
    for ident in range(MOST_OPEN):
        await talk.take(id=ident, method="tools/call", params={"name": "x"})
    await talk.take(id=3, method="tools/list")
    await talk.take(id="more", method="tools/list")

    assert [m["error"]["code"] for m in talk.out.messages] == [-32600, -32600]
