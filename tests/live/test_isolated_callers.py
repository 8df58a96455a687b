"""Isolated servers under hostile load: what a caller's process asks, and when it ends (PROTOCOL G5)."""

import asyncio
import json
import os
import signal

import pytest

from support.bridge import Bridge
from support.client import META, Modern, answer_to, code_of, text_of
from support.fakes import echo, entry, hostile
from support.waiting import PATIENCE, eventually

OFFERS = {META + "clientCapabilities": {"elicitation": {}}}
ANSWER = {"action": "accept", "content": {}}
ISOLATED = echo("files", sessions="isolated", timeouts={"stop": "1s"})
ELICIT = "elicitation/create"
MOST = 64  # questions of one call
WITHIN = 20 * PATIENCE


def asking(client, tool, ident, state=None, keys=(), **arguments):
    message = client.call_of(tool, arguments, ident)
    more = {} if state is None else {"requestState": state}
    if keys:
        more["inputResponses"] = dict.fromkeys(keys, ANSWER)
    message["params"] |= {"_meta": OFFERS, **more}
    return message


async def exchanged(client, message):
    return answer_to(await client.send(message, within=WITHIN), message["id"])


@pytest.mark.parametrize(("count", "size", "most"), [(1000, 0, MOST), (20, 100_000, 10)])
async def test_questions_of_a_call_are_bounded_and_the_rest_is_refused(count, size, most):
    async with Bridge([ISOLATED]) as bridge, bridge.modern("files") as client:
        asked = await exchanged(client, asking(client, "ask_many", 1, count=count, size=size))
        keys = list(asked["result"]["inputRequests"])
        assert len(keys) == most
        state = asked["result"]["requestState"]
        message = asking(client, "ask_many", 2, state, keys, count=count, size=size)
        done = await exchanged(client, message)
        assert json.loads(text_of(done)) == {"result": most, "error": count - most}


async def test_a_state_serves_one_retry_at_a_time_its_owner_and_its_request():
    async with Bridge([ISOLATED]) as bridge, bridge.modern("files") as client:
        question = {"method": ELICIT}
        asked = await exchanged(client, asking(client, "ask", 1, **question))
        state, keys = asked["result"]["requestState"], list(asked["result"]["inputRequests"])
        other = Modern(client.url, await bridge.more_token("files"))
        async with other:
            foreign = await exchanged(other, asking(other, "ask", 1, state, keys, **question))
            assert code_of(foreign) == "bad_text"
        for wrong in (
            state[:-2] + "AA",
            state + "x",
            "mcpb1.",
            "mcpb1.x.9.y",
            state.replace(".", ","),
        ):
            if wrong.startswith("mcpb1."):
                answer = await exchanged(client, asking(client, "ask", 2, wrong, keys, **question))
                assert code_of(answer) == "bad_text", wrong
        elsewhere = await exchanged(client, asking(client, "echo", 3, state, keys, text="x"))
        assert code_of(elsewhere) == "bad_text"
        done = await exchanged(client, asking(client, "ask", 4, state, keys, **question))
        assert json.loads(text_of(done)) == {"result": ANSWER}


async def test_a_kill_between_question_and_retry_is_told():
    async with Bridge([ISOLATED]) as bridge, bridge.modern("files") as client:
        question = {"method": ELICIT}
        asked = await exchanged(client, asking(client, "ask", 1, **question))
        for pid in bridge.processes():
            os.kill(pid, signal.SIGKILL)
        await eventually(lambda: not bridge.processes())
        state, keys = asked["result"]["requestState"], list(asked["result"]["inputRequests"])
        answer = await exchanged(client, asking(client, "ask", 2, state, keys, **question))
        assert code_of(answer) in {"server_crashed", "input_late"}
        again = await exchanged(client, asking(client, "ask", 3, **question))
        assert "inputRequests" in again["result"]


async def test_who_calls_while_its_last_process_ends_gets_the_next_one():
    times = {"idle": "1s", "stop": "9s"}
    server = hostile("flush", "files", "flushed", "1", sessions="isolated", timeouts=times)
    async with Bridge([server]) as bridge, bridge.modern("files") as client:
        first = await client.text("pid", within=WITHIN)
        await eventually(lambda: list(bridge.state_dir.rglob("flushed.ending")), within=10)
        assert await client.text("pid", within=WITHIN) != first


async def test_a_storm_of_initializes_gets_as_many_processes_as_may_be():
    limits = {"limits": {"isolated_per_token": 4}}
    async with Bridge([ISOLATED], host=limits) as bridge:
        sessions = [bridge.session("files", opened=False) for _ in range(20)]
        answers = await asyncio.gather(
            *(each.send(each.initialize_of(1), within=WITHIN) for each in sessions)
        )
        made = [each for each in answers if each.status == 200]
        refused = [answer_to(each, 1) for each in answers if each.status == 503]
        assert (len(made), len(refused)) == (4, 16)
        assert {code_of(answer) for answer in refused} == {"too_many_sessions"}
        assert len(bridge.processes()) == 4
        for session, answer in zip(sessions, answers, strict=True):
            if answer.status == 200:
                session.session = answer.header("Mcp-Session-Id")
                session.version = "2025-11-25"
                await session.delete()
            await session.drop()
        await eventually(lambda: not bridge.processes())
        async with bridge.session("files") as session:
            assert await session.text("echo", text="again") == "again"


async def test_a_delete_in_the_middle_ends_the_call_and_the_process():
    async with Bridge([ISOLATED]) as bridge, bridge.session("files") as session:
        stream = await session.open_stream(
            session.call_of("progress", {"nonce": "n", "steps": 1, "then": "wait"}, 1, "t")
        )
        await stream.until("notifications/progress")
        assert (await session.delete()).status < 300
        last = await stream.event(within=WITHIN)
        assert last is None or code_of(last) in {"server_stopped", "cancelled", "shutting_down"}
        await stream.close()
        await eventually(lambda: not bridge.processes())
        assert (await session.send(session.call_of("pid", {}))).status == 404


@pytest.mark.parametrize("era", ["session", "modern"])
async def test_a_kill_before_the_first_answer_is_one_error_and_leaves_nothing(era):
    server = echo("files", "--start", "2", sessions="isolated")
    async with Bridge([server]) as bridge:
        make = bridge.session if era == "session" else bridge.modern
        client = make("files", **({"opened": False} if era == "session" else {}))
        async with client:
            message = client.initialize_of(1) if era == "session" else client.call_of("pid", {}, 1)
            sent = asyncio.create_task(client.send(message, within=WITHIN))
            while not sent.done():  # its first one may only have been learning its era
                await eventually(lambda: bridge.processes() or sent.done())
                for pid in bridge.processes():
                    os.kill(pid, signal.SIGKILL)
                await eventually(lambda: not bridge.processes() or sent.done())
            response = await sent
            answer = answer_to(response, 1)
            assert code_of(answer) in {"start_failed", "server_crashed"}
            assert answer["error"]["data"]["death"]["signal"] == "SIGKILL"
            assert response.header("Mcp-Session-Id") is None
            assert not bridge.processes()


async def test_a_client_cannot_answer_what_another_session_was_asked():
    async with (
        Bridge([entry("modern", "files")]) as bridge,
        bridge.session("files") as session,
        bridge.session("files") as thief,
    ):
        stream = await session.open_stream(session.call_of("ask", {"method": ELICIT}, 1))
        asked = await stream.until(ELICIT)
        stolen = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}
        assert (await thief.send(stolen)).status in {202, 400}
        await session.send({"jsonrpc": "2.0", "id": asked["id"], "result": ANSWER})
        assert json.loads(text_of(await stream.until(1))) == ANSWER
        await stream.close()
