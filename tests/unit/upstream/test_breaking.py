"""Streams that break off, and sessions that the far end forgets."""

import asyncio
import socket

import pytest
from aiohttp import web

from autobot_mcp_bridge.upstream import calls
from support.far import event, stream
from support.waiting import eventually

# ---- streams that break ----


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


async def test_a_call_is_tried_again_where_nothing_was_sent(far, talk, monkeypatch):
    monkeypatch.setattr(calls, "PAUSES", (3.0, 3.0))
    await talk.open()
    await far.close()
    asked = asyncio.create_task(talk.ask("tools/call", {"name": "x"}, 2))
    await asyncio.to_thread(refused_once, far.port)
    await far.open()

    assert "result" in await asked
    assert far.methods_of().count("tools/call") == 1


def refused_once(port):
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1)


async def test_a_call_that_reaches_nobody_fails_and_ends_the_program(far, talk):
    await talk.open()
    await far.close()
    lost = await talk.ask("tools/call", {"name": "x"}, 2)

    assert "connection refused" in lost["error"]["message"]
    assert (await talk.relay.ended).status == 69


# ---- a person's client, whose session the far end forgets ----


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
