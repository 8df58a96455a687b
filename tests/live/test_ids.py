"""Ids, progress tokens and cancellations of different clients never meet (PROTOCOL A16, D1, D2)."""

import asyncio
import itertools
import json
import os
import signal

import pytest
import pytest_asyncio

from support.bridge import Bridge
from support.client import MODERN, answer_to, code_of, same_id, text_of
from support.fakes import echo
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

IDS = [0, "0", 1, "1", -1, 2**53 + 1, -(2**53) - 1, "", "a" * 500, '"\\\n ☃ \U0001f600', "null"]
CLIENTS = 50


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    async with Bridge([echo("files"), echo("other")]) as running:
        yield running


async def state_of(bridge, instance="files"):
    async with bridge.modern(instance) as client:
        return json.loads(await client.text("state"))


@pytest.mark.requirement("A16")
@pytest.mark.parametrize("ident", IDS, ids=repr)
async def test_an_id_comes_back_with_its_value_and_type(bridge, ident):
    async with bridge.session("files") as session, bridge.modern("files") as modern:
        for client in (session, modern):
            answer = answer_to(
                await client.send(client.call_of("echo", {"text": "x"}, ident)), ident
            )
            assert text_of(answer) == "x"


@pytest.mark.requirement("A16")
@pytest.mark.parametrize("ident", IDS, ids=repr)
async def test_an_error_of_the_server_carries_the_callers_id(bridge, ident):
    async with bridge.session("files") as session:
        response = await session.send(
            session.call_of("fail", {"code": -1, "message": "no", "data": {"id": 5}}, ident)
        )
        error = answer_to(response, ident)["error"]
        assert response.status == 200
        assert (error["code"], error["message"], error["data"]) == (-1, "no", {"id": 5})


async def test_calls_in_flight_with_alike_ids_each_get_their_own_answer(bridge):
    async with bridge.session("files") as session:
        alike = [0, "0", 1, "1", 2**53 + 1, str(2**53 + 1), "a" * 500]

        async def call(ident):
            arguments = {"text": f"{type(ident).__name__} {ident}", "delay": 0.2}
            response = await session.send(session.call_of("echo", arguments, ident))
            return text_of(answer_to(response, ident))

        texts = await asyncio.gather(*map(call, alike))
        assert texts == [f"{type(ident).__name__} {ident}" for ident in alike]


@pytest.mark.parametrize("ident", [None, True, [1], {"a": 1}], ids=repr)
async def test_an_id_of_a_type_that_mcp_does_not_know_is_refused(bridge, ident):
    async with bridge.session("files") as session:
        response = await session.send(session.call_of("echo", {"text": "x"}, ident))
        assert response.status == 400
        assert response.messages[0]["error"]["code"] == -32600
        assert response.messages[0]["id"] is None


@pytest.mark.requirement("D1")
async def test_fifty_clients_that_count_alike_never_mix(bridge):
    async def work(number):
        make = bridge.session if number % 2 else bridge.modern
        async with make("files", ids=iter(range(100))) as client:
            for turn in range(20):
                nonce = f"client {number} turn {turn}"
                assert await client.text("echo", text=nonce, delay=0.002 * (turn % 3)) == nonce

    await asyncio.gather(*map(work, range(CLIENTS)))


@pytest.mark.requirement("D1")
async def test_progress_with_equal_tokens_and_ids_reaches_each_owner_only(bridge):
    async def call(client, nonce):
        message = client.call_of("progress", {"nonce": nonce, "delay": 0.02}, 7, "token")
        messages = (await client.send(message)).messages
        steps = [m["params"] for m in messages if m.get("method") == "notifications/progress"]
        assert [step["message"] for step in steps] == [nonce] * 3
        assert [step["progress"] for step in steps] == [1, 2, 3]
        assert all(step["progressToken"] == "token" for step in steps)
        assert text_of(messages[-1]) == nonce
        assert same_id(messages[-1]["id"], 7)
        assert len(messages) == 4

    async with (
        bridge.session("files") as one,
        bridge.session("files") as two,
        bridge.modern("files") as three,
        bridge.modern("files") as four,
    ):
        await asyncio.gather(
            call(one, "one"), call(two, "two"), call(three, "three"), call(four, "four")
        )


@pytest.mark.parametrize("token", [0, "0", 1, "1", 2**53 + 1, "t" * 300], ids=repr)
async def test_a_progress_token_comes_back_with_its_value_and_type(bridge, token):
    async with bridge.session("files") as session:
        message = session.call_of("progress", {"nonce": "n"}, 1, token)
        messages = (await session.send(message)).messages
        assert all(same_id(m["params"]["progressToken"], token) for m in messages[:-1])
        assert len(messages) == 4


@pytest.mark.parametrize("tool", ["late_progress", "stray_progress"])
async def test_progress_that_belongs_to_no_open_call_reaches_nobody(bridge, tool):
    async with bridge.session("files") as session, bridge.session("files") as bystander:
        stream = await bystander.listen()
        response = await session.send(session.call_of(tool, {}, 1, "mine"))
        assert text_of(answer_to(response, 1)) == "done"
        # What comes after it in the same pipe has been read once this answers.
        assert await session.text("echo", text="after") == "after"
        async with bridge.modern("files") as caller:
            await caller.text("list_changed", tool="the-next-thing")
        assert (await stream.event())["method"] == "notifications/tools/list_changed"
        for message in response.messages:
            assert message.get("method") != "notifications/progress"
        await stream.close()


@pytest.mark.requirement("D2")
@pytest.mark.parametrize("ident", [0, "0", 1, "1"], ids=repr)
async def test_cancelling_an_id_ends_that_call_alone(bridge, ident):
    twin = str(ident) if isinstance(ident, int) else int(ident)
    tag, other = f"cancel {ident!r}", f"keep {ident!r}"
    own = itertools.count(100)
    async with (
        bridge.session("files", ids=own) as session,
        bridge.session("files") as stranger,
    ):
        mine = asyncio.create_task(session.send(session.call_of("wait", {"tag": tag}, ident)))
        kept = asyncio.create_task(session.send(session.call_of("wait", {"tag": other}, twin)))
        await eventually(lambda: both_wait(bridge, tag, other))
        foreign = await stranger.notify("notifications/cancelled", {"requestId": ident})
        assert (foreign.status, foreign.body) == (202, b"")
        done = await session.notify(
            "notifications/cancelled", {"requestId": ident, "reason": "enough"}
        )
        assert (done.status, done.body) == (202, b"")
        await eventually(lambda: was_cancelled(bridge, tag))
        assert await session.text("release", tag=other) == "released"
        assert text_of(answer_to(await kept, twin)) == other
        ended = await mine
        assert ended.status == 200
        assert not any("result" in message for message in ended.messages)
        assert not any(x.startswith("unknown") for x in (await state_of(bridge))["cancelled"])


async def both_wait(bridge, *tags):
    return set(tags) <= set((await state_of(bridge))["waiting"])


async def was_cancelled(bridge, tag):
    return tag in (await state_of(bridge))["cancelled"]


@pytest.mark.requirement("E14")
async def test_a_modern_client_that_closes_its_stream_has_cancelled(bridge):
    async with bridge.modern("files") as client:
        for tag, progress in (("plain", None), ("with progress", "token")):
            message = client.call_of("wait", {"tag": tag}, 3, progress)
            sent = asyncio.create_task(client.send(message))
            await eventually(lambda tag=tag: both_wait(bridge, tag))
            sent.cancel()
            await asyncio.gather(sent, return_exceptions=True)
            await eventually(lambda tag=tag: was_cancelled(bridge, tag))


async def test_a_handshake_client_that_drops_its_post_has_not_cancelled(bridge):
    async with bridge.session("files") as session:
        sent = asyncio.create_task(session.send(session.call_of("wait", {"tag": "dropped"}, 3)))
        await eventually(lambda: both_wait(bridge, "dropped"))
        sent.cancel()
        await asyncio.gather(sent, return_exceptions=True)
        # A round trip through the same channel: a cancellation would have come before it.
        assert await session.text("echo", text="later") == "later"
        assert not await was_cancelled(bridge, "dropped")
        assert await session.text("release", tag="dropped") == "released"


@pytest.mark.requirement("D3")
async def test_a_notification_with_an_id_of_the_servers_is_no_answer_to_anybody(bridge):
    """A response or notification that names ids it does not own moves nothing (D2, D3)."""
    async with bridge.session("files") as session:
        for ident in (0, 1, 2, "1", "ask-1"):
            response = await session.send({"jsonrpc": "2.0", "id": ident, "result": {}})
            assert (response.status, response.body) == (202, b"")
        assert await session.text("echo", text="fine") == "fine"


async def test_two_calls_with_one_id_at_once_do_not_confuse_the_session(bridge):
    async with bridge.session("files") as session:
        first = asyncio.create_task(session.send(session.call_of("wait", {"tag": "first"}, 5)))
        await eventually(lambda: both_wait(bridge, "first"))
        second = await session.send(session.call_of("echo", {"text": "second"}, 5))
        if second.status == 200:
            assert text_of(answer_to(second, 5)) == "second"
        else:
            assert (second.status, second.messages[0]["error"]["code"]) == (400, -32600)
        await session.text("release", tag="first")
        assert text_of(answer_to(await first, 5)) == "first"


async def test_a_server_that_answers_twice_gives_the_caller_one_answer(bridge):
    async with bridge.session("files") as session:
        response = await session.send(session.call_of("twice", {}, 1))
        assert text_of(answer_to(response, 1)) == "first"
        assert await session.text("echo", text="next") == "next"


@pytest.mark.requirement("D3")
async def test_requests_of_the_server_are_refused_where_sessions_share_it(bridge):
    """No client features are offered to a shared server, so it is told at once."""
    async with bridge.session("files") as session:
        for method in ("sampling/createMessage", "roots/list", "elicitation/create"):
            answer = json.loads(await session.text("ask", method=method))
            assert answer["error"]["code"] == -32601, method
        assert json.loads(await session.text("ask", method="ping")) == {"result": {}}


async def test_a_call_of_an_unknown_session_touches_no_other(bridge):
    async with bridge.modern("files") as client:
        junk = {"Mcp-Session-Id": "junk", "Last-Event-ID": "9"}
        response = await client.send(client.call_of("echo", {"text": "x"}, 1), headers=junk)
        assert response.status == 200
        assert text_of(answer_to(response, 1)) == "x"
        assert response.header("Mcp-Session-Id") is None
        assert client.version == MODERN


@pytest.mark.requirement("H6")
async def test_what_a_caller_gets_after_a_missed_deadline_is_an_error_of_its_own():
    async with Bridge([echo("files", timeouts={"call": "300ms"})]) as bridge:
        async with bridge.session("files") as session:
            answer = await session.call("wait", {"tag": "late"})
            assert code_of(answer) == "call_timeout"
            state = json.loads(await session.text("state"))
            assert state["cancelled"] == ["late"]


async def test_of_two_calls_with_one_id_that_wait_for_a_start_one_is_refused():
    async with Bridge([echo("files", "--start", "0.5")]) as bridge:
        async with bridge.session("files") as session:
            os.kill(int(await session.text("pid")), signal.SIGKILL)
            await bridge.in_state("files", "sleeping")
            message = session.call_of("echo", {"text": "x"}, 7)
            pair = await asyncio.gather(session.send(message), session.send(message))
            assert sorted(response.status for response in pair) == [200, 400]
            words = [json.loads(response.body).get("error") for response in pair]
            assert [word["data"]["code"] for word in words if word] == ["duplicate_id"]
