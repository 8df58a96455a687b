"""Isolated servers under hostile load: what a caller's process asks, and when it ends (PROTOCOL G5)."""

import json
import os
import signal

import pytest

from support.bridge import Bridge
from support.client import META, Modern, answer_to, code_of, text_of
from support.fakes import echo, hostile
from support.waiting import PATIENCE, eventually

OFFERS = {META + "clientCapabilities": {"elicitation": {}}}
ANSWER = {"action": "accept", "content": {}}
ISOLATED = echo("files", sessions="isolated", timeouts={"stop": "1s"})
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
        question = {"method": "elicitation/create"}
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
        question = {"method": "elicitation/create"}
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
