"""Messages of a stdio client against a far end that does as it is told (tests/support/far.py)."""

import asyncio
import json

import orjson
import pytest
from aiohttp import web

from autobot_mcp_bridge.model.addresses import listed
from autobot_mcp_bridge.model.versions import META_CAPABILITIES, META_VERSION, MODERN
from autobot_mcp_bridge.upstream import calls, listening
from autobot_mcp_bridge.upstream.client import Client
from autobot_mcp_bridge.upstream.reach import Reach
from autobot_mcp_bridge.upstream.relay import MOST_OPEN, Relay
from autobot_mcp_bridge.upstream.settings import Settings
from support.far import Far, never, stream
from support.waiting import eventually

OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
OWN_META = {META_VERSION: MODERN, META_CAPABILITIES: {}}


class Written:
    """In the place of stdout."""

    def __init__(self):
        self.lines = []

    async def write(self, line):
        assert b"\n" not in line
        self.lines.append(line)

    @property
    def messages(self):
        return [orjson.loads(line) for line in self.lines]

    async def answer(self, ident):
        def found():
            return [m for m in self.messages if m.get("id") == ident and "method" not in m]

        await eventually(found, what=f"the answer to {ident}")
        (only,) = found()
        return only


class Talk:
    def __init__(self, relay, out):
        self.relay, self.out = relay, out

    async def take(self, **message):
        await self.relay.take(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def ask(self, method, params=None, ident=1):
        await self.take(id=ident, method=method, params=params or {})
        return await self.out.answer(ident)

    async def modern(self, method, params=None, ident=1):
        return await self.ask(method, {**(params or {}), "_meta": OWN_META}, ident)

    async def open(self):
        await self.ask("initialize", OPENING, "init")
        await self.take(method="notifications/initialized")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(calls, "PAUSES", (0.01, 0.02))
    monkeypatch.setattr(calls, "RETRY", 0.01)
    monkeypatch.setattr(listening, "RETRY", 0.01)


@pytest.fixture
async def far():
    async with Far() as running:
        yield running


@pytest.fixture
async def talk(far):
    settings = Settings(
        far.url, Reach((listed("127.0.0.1"),), plain=True), {"X-Own": "a"}, most=5000
    )
    async with Client(settings) as client:
        out = Written()
        relay = Relay(settings, client, out)
        yield Talk(relay, out)
        await relay.close()


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


# ---- streams that break ----


def event(ident, message):
    return f"id: {ident}\ndata: {json.dumps(message)}\n\n".encode()


async def test_a_stream_that_breaks_is_gone_on_with_by_its_last_event(far, talk):
    await talk.open()
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
    after = []

    async def begins(request, message):
        reply = await stream(request, b"id: a1\ndata:\n\n", event("a2", note))
        request.transport.abort()
        return reply

    async def goes_on(request, _):
        after.append(request.headers.get("Last-Event-ID"))
        last = {"jsonrpc": "2.0", "id": 2, "result": {"ok": True}}
        return await stream(request, event("a3", last))

    far.answers["tools/call"] = begins
    await eventually(lambda: "GET" in far.methods)
    far.get = goes_on

    assert (await talk.ask("tools/call", {"name": "x"}, 2))["result"] == {"ok": True}
    assert after == ["a2"]
    assert note in talk.out.messages
    assert far.methods_of().count("tools/call") == 1


@pytest.mark.parametrize("pieces", [[b": no id\n\n"], []], ids=["no-id", "nothing"])
async def test_a_call_whose_stream_breaks_without_an_id_fails_at_once(far, talk, pieces):
    await talk.open()

    async def begins(request, _):
        reply = await stream(request, *pieces)
        request.transport.abort()
        return reply

    far.answers["tools/call"] = begins
    lost = await talk.ask("tools/call", {"name": "x"}, 2)

    assert "connection" in lost["error"]["message"]
    assert far.methods_of().count("tools/call") == 1, "it may have been carried out"


async def test_a_modern_stream_is_never_gone_on_with(far, talk):
    async def begins(request, _):
        reply = await stream(request, b"id: a1\ndata:\n\n")
        request.transport.abort()
        return reply

    far.answers["tools/call"] = begins
    lost = await talk.modern("tools/call", {"name": "x"})

    assert "connection" in lost["error"]["message"]
    assert "GET" not in far.methods


async def test_a_question_that_changes_nothing_is_asked_again(far, talk):
    await talk.open()
    cut = []

    async def first_cut(request, message):
        if not cut:
            cut.append(request)
            request.transport.abort()
        return far.answer(message, {"tools": []})

    far.answers["tools/list"] = first_cut

    assert "result" in await talk.ask("tools/list", ident=2)
    assert far.methods_of().count("tools/list") == 2


async def test_a_call_is_tried_again_where_nothing_was_sent(far, talk):
    await talk.open()
    await far.close()
    asked = asyncio.create_task(talk.ask("tools/call", {"name": "x"}, 2))
    lost = await asked

    assert "connection refused" in lost["error"]["message"]
    assert (await talk.relay.ended).status == 69


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


# ---- a person's client, whose session the far end forgets ----


@pytest.fixture
async def attended(far):
    reach = Reach((listed("127.0.0.1"),), plain=True)
    async with Client(settings := Settings(far.url, reach, attended=True)) as client:
        out = Written()
        relay = Relay(settings, client, out)
        yield Talk(relay, out)
        await relay.close()


def forgets(far, session):
    """From now on it knows this session only, which its next initialize gives."""
    far.session = session

    async def known(request, message):
        if request.headers.get("Mcp-Session-Id") != session:
            return web.Response(status=404)
        return far.answer(message, {"tools": []})

    far.answers |= dict.fromkeys(("tools/list", "tools/call", "resources/subscribe"), known)


async def test_a_lost_session_is_opened_anew_and_what_was_asked_for_is_asked_again(far, attended):
    await attended.open()
    await attended.ask("resources/subscribe", {"uri": "a:b"}, 1)
    forgets(far, "session-2")
    both = [attended.take(id=n, method="tools/list", params={}) for n in (2, 3)]
    await asyncio.gather(*both)

    assert "result" in await attended.out.answer(2)
    assert "result" in await attended.out.answer(3)
    assert far.methods_of().count("initialize") == 2
    assert far.methods_of().count("notifications/initialized") == 2
    assert far.methods_of().count("resources/subscribe") == 2
    assert len(attended.out.lines) == 4, "of its own requests the client hears nothing"
    await attended.relay.close()
    assert far.methods[-1] == "DELETE"


async def test_a_call_that_may_have_been_carried_out_is_not_sent_to_the_next_session(far, attended):
    await attended.open()

    async def begins(request, _):
        reply = await stream(request, b"id: a1\ndata:\n\n")
        request.transport.abort()
        return reply

    async def gone(request, _):
        return web.Response(status=404)

    far.answers["tools/call"] = begins
    await eventually(lambda: "GET" in far.methods)
    far.get = gone
    lost = await attended.ask("tools/call", {"name": "x"}, 2)

    assert "no longer knows" in lost["error"]["message"]
    assert far.methods_of().count("tools/call") == 1
    assert not attended.relay.ended.done()
