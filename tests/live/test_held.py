"""A handshake server asks in mid-call, and a modern client answers by its retry (PROTOCOL G5, E19)."""

import json
import os
import signal

import pytest
import pytest_asyncio

from support.bridge import Bridge
from support.client import META, answer_to, dumps, error_of, text_of
from support.eras import FEATURES, NAME, heard, isolated, modern, pid_of
from support.waiting import eventually
from support.wire import encode

pytestmark = pytest.mark.asyncio(loop_scope="module")

ONE, MANY = "test_input_required_result_elicitation", "test_input_required_result_multiple_inputs"
ANSWERS = {
    "elicitation": NAME,
    "sampling": {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"},
    "roots": {"roots": []},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    calm = {"breaker": {"crashes": 50}}
    async with Bridge([isolated("old", "legacy", **calm), isolated("other", "legacy")]) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(bridge):
    async with modern(bridge, "old", **FEATURES) as made:
        yield made


async def asked(client, tool, arguments=None):
    """The state and the questions of a call that its server interrupts."""
    result = (await client.call(tool, arguments))["result"]
    assert result["resultType"] == "input_required", result
    return result["requestState"], result["inputRequests"]


def answers_to(questions):
    return {key: ANSWERS[key.partition("-")[0]] for key in questions}


async def begun(client):
    """How many calls the process has been given."""
    return (await heard(client)).count("tools/call")


@pytest.mark.requirement("G5", "E19", "E13")
async def test_the_retry_gets_the_rest_of_that_very_call(client):
    before = await begun(client)
    state, questions = await asked(client, ONE)
    assert [each["method"] for each in questions.values()] == ["elicitation/create"]
    done = await client.retry(ONE, state, answers_to(questions))
    assert text_of(done) == "Hello, Ada!"
    assert done["result"]["resultType"] == "complete"
    assert await begun(client) == before + 2  # this call, and the one that tells


async def test_questions_that_come_together_are_asked_together(client):
    state, questions = await asked(client, MANY)
    methods = sorted(each["method"] for each in questions.values())
    assert methods == ["elicitation/create", "roots/list", "sampling/createMessage"]
    assert text_of(await client.retry(MANY, state, answers_to(questions))) == "All inputs received."


async def test_what_is_not_answered_is_asked_again_and_other_keys_are_passed_over(client):
    state, questions = await asked(client, MANY)
    first, *rest = questions
    answers = {first: answers_to(questions)[first], "else": {"x": 1}}
    again = (await client.retry(MANY, state, answers))["result"]
    assert again["resultType"] == "input_required"
    assert set(again["inputRequests"]) == set(rest)
    late = error_of(await client.retry(MANY, state, answers_to(questions)))
    assert late["code"] == -32602  # of the state before
    done = await client.retry(MANY, again["requestState"], answers_to(rest))
    assert text_of(done) == "All inputs received."


async def test_each_question_has_a_key_of_its_own_also_in_later_rounds(client):
    tool = "gw_ask_twice"
    seen, state, questions = [], *(await asked(client, tool))
    answer = None
    for number in range(5):
        key = next(iter(questions))
        seen.append(key)
        named = {"action": "accept", "content": {"name": f"n{number}"}}
        answer = await client.retry(tool, state, {key: named})
        if answer["result"]["resultType"] == "complete":
            break
        state, questions = answer["result"]["requestState"], answer["result"]["inputRequests"]
    assert len(set(seen)) == len(seen) == 3
    assert [each["content"]["name"] for each in json.loads(text_of(answer))] == ["n0", "n1", "n2"]


@pytest.mark.requirement("E19")
async def test_a_state_that_is_not_this_callers_for_this_request_is_refused(bridge, client):
    state, questions = await asked(client, ONE)
    answers = answers_to(questions)
    tampered = state[:-4] + ("AAAA" if state[-4:] != "AAAA" else "BBBB")
    number, dot, mac = state.rpartition(".")
    for wrong in (tampered, f"{number}9{dot}{mac}", "mcpb1.", "mcpb1.a.b.c", "mcpb1.ä.1.x"):
        error = error_of(await client.retry(ONE, wrong, answers))
        assert (error["code"], "requestState" in error["message"]) == (-32602, True)
    for more in ({"arguments": {"x": 1}},):
        assert error_of(await client.retry(ONE, state, answers, **more))["code"] == -32602
    assert error_of(await client.retry(MANY, state, answers))["code"] == -32602
    token = await bridge.more_token("old")
    for name, key in (("old", token), ("other", "")):
        async with modern(bridge, name, token=key, **FEATURES) as stranger:
            assert error_of(await stranger.retry(ONE, state, answers))["code"] == -32602
    assert text_of(await client.retry(ONE, state, answers)) == "Hello, Ada!"


async def test_a_state_is_good_for_one_retry(client):
    state, questions = await asked(client, ONE)
    assert "result" in await client.retry(ONE, state, answers_to(questions))
    error = error_of(await client.retry(ONE, state, answers_to(questions)))
    assert (error["code"], error["data"]["code"]) == (-32602, "input_late")


@pytest.mark.requirement("E22")
async def test_a_state_ends_with_its_process(client):
    state, questions = await asked(client, ONE)
    os.kill(await pid_of(client), signal.SIGKILL)

    async def refused():
        answer = await client.retry(ONE, state, answers_to(questions))
        return "error" in answer and "anew" in error_of(answer)["message"]

    await eventually(refused)
    assert await pid_of(client) > 0
    assert "error" in await client.retry(ONE, state, answers_to(questions))


async def test_an_answer_that_comes_without_the_clients_is_kept_for_its_retry(client):
    state, questions = await asked(client, "gw_withdraw")
    await client.text("gw_sleep", seconds=0.5)  # another call comes in between
    done = await client.retry("gw_withdraw", state, answers_to(questions))
    assert text_of(done).startswith("withdrawn")


async def test_a_retry_can_be_cancelled_by_its_client(client):
    state, questions = await asked(client, MANY)
    first = next(iter(questions))
    assert "result" in await client.retry(MANY, state, {first: answers_to(questions)[first]})
    assert await pid_of(client) > 0  # what is held holds up nobody


async def test_progress_is_on_the_retrys_stream_under_its_own_token(client):
    meta = {"_meta": {"progressToken": "first"}}
    params = {"name": "gw_ask_progress", "arguments": {}}
    response = await client.send(client.request_of("tools/call", {**params, **meta}, 1))
    result = answer_to(response, 1)["result"]
    more = {
        "requestState": result["requestState"],
        "inputResponses": answers_to(result["inputRequests"]),
        "_meta": {"progressToken": "second"},
    }
    response = await client.send(client.request_of("tools/call", {**params, **more}, 2))
    told = [each["params"] for each in response.messages if "method" in each]
    assert [each["progressToken"] for each in told] == ["second"]
    assert "result" in answer_to(response, 2)


@pytest.mark.requirement("E9")
async def test_a_feature_that_the_client_lacks_is_named_and_the_call_is_over(bridge):
    async with modern(bridge, "old") as plain:
        response = await plain.send(plain.call_of(ONE, {}, 1))
        error = error_of(answer_to(response, 1))
        assert (response.status, error["code"]) == (400, -32021)
        assert error["data"]["requiredCapabilities"] == {"elicitation": {}}
        assert await pid_of(plain) > 0


@pytest.mark.requirement("E18")
async def test_logs_after_the_retry_are_for_who_asked_for_them(client):
    meta = {"_meta": {META + "logLevel": "debug"}}
    params = {"name": "gw_ask_progress", "arguments": {}, **meta}
    response = await client.send(client.request_of("tools/call", params, 1))
    result = answer_to(response, 1)["result"]
    more = {
        "requestState": result["requestState"],
        "inputResponses": answers_to(result["inputRequests"]),
    }
    response = await client.send(client.request_of("tools/call", {**params, **more}, 2))
    assert "notifications/message" in [each.get("method") for each in response.messages]


async def test_a_client_that_goes_during_the_retry_cancels_the_call(client):
    state, questions = await asked(client, "gw_ask_sleep")
    params = {"name": "gw_ask_sleep", "arguments": {}, "requestState": state}
    params["inputResponses"] = answers_to(questions)
    message = client.request_of("tools/call", params, 1)
    retry = await client.take_connection()
    body = dumps(client.prepare(message))
    retry.send(encode("POST", client.target, client.headers(message), body))

    async def stands(word):
        return json.loads(await client.text("gw_sleeps")).get("held") == word

    await eventually(lambda: stands("started"))
    retry.reset()
    await eventually(lambda: stands("cancelled"))
