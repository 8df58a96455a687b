"""A modern server asks by its results, and a handshake client by requests (PROTOCOL G5, D3)."""

import asyncio
import json

import pytest
import pytest_asyncio

from support.bridge import Bridge
from support.client import answer_to, code_of, error_of, text_of
from support.eras import NAME, conformance
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

ONE = "test_input_required_result_elicitation"
ANSWERS = {
    "elicitation/create": NAME,
    "sampling/createMessage": {"content": {"type": "text", "text": "Paris"}},
    "roots/list": {"roots": [{"uri": "file:///x"}]},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    async with Bridge([conformance("new", "modern")]) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def session(bridge):
    async with bridge.session("new") as made:
        yield made


async def answer(session, question, result=None):
    result = result or ANSWERS[question["method"]]
    return await session.send({"jsonrpc": "2.0", "id": question["id"], "result": result})


async def through(session, tool, arguments=None):
    """The last answer of a call, and the methods that it has asked by."""
    message, asked = session.call_of(tool, arguments or {}, 1), []
    stream = await session.open_stream(message, headers={"Accept": "text/event-stream"})
    while "method" in (said := await stream.event()):
        if "id" in said:
            asked.append(said["method"])
            await answer(session, said)
    await stream.close()
    return said, asked


async def open_calls(bridge):
    return (await bridge.server("new"))["open_calls"]


async def test_large_calls_that_wait_for_their_clients_have_bounded_room_together(session):
    """Each is kept to be made again; the one that finds no room is refused once it is asked about."""
    arguments = {"pad": "x" * 3_900_000}
    streams = []
    for number in range(17):  # 64 MiB hold 17 of them
        stream = await session.open_stream(session.call_of(ONE, arguments, number))
        streams.append((stream, await stream.event()))
    answer_of_18th = await session.call(ONE, arguments)
    assert code_of(answer_of_18th) == "queue_full"

    for stream, question in streams:
        await answer(session, question)
        assert "result" in await stream.event()
        await stream.close()
    assert (await through(session, ONE, arguments))[1] == ["elicitation/create"]


@pytest.mark.requirement("G5", "D3")
@pytest.mark.parametrize(
    ("tool", "methods", "says"),
    [
        (ONE, ["elicitation/create"], "Hello, Ada!"),
        ("test_input_required_result_sampling", ["sampling/createMessage"], "Model said: Paris"),
        ("test_input_required_result_list_roots", ["roots/list"], "Client exposed 1 root(s)."),
        (
            "test_input_required_result_multiple_inputs",
            ["elicitation/create", "sampling/createMessage", "roots/list"],
            "All inputs received.",
        ),
        (
            "test_input_required_result_multi_round",
            ["elicitation/create", "elicitation/create"],
            "Ada likes None.",
        ),
        ("gw_state_only", [], "after 3 rounds"),
    ],
    ids=lambda value: str(value)[-14:],
)
async def test_what_the_server_wants_is_asked_of_the_client_within_one_call(
    session, tool, methods, says
):
    done, asked = await through(session, tool)
    assert (text_of(done), asked, done["id"]) == (says, methods, 1)


@pytest.mark.requirement("D3")
async def test_an_answer_of_another_session_or_to_nothing_is_dropped(bridge, session):
    async with bridge.session("new") as other:
        stream = await session.open_stream(session.call_of(ONE, {}, 1))
        asked = await stream.until("elicitation/create")
        wrong = {"action": "accept", "content": {"name": "Eve"}}
        for who in (other, session):
            ident = asked["id"] if who is other else "bridge-0"
            sent = await who.send({"jsonrpc": "2.0", "id": ident, "result": wrong})
            assert sent.status == 202
        await answer(session, asked)
        assert text_of(await stream.until(1)) == "Hello, Ada!"
        await answer(session, asked, wrong)  # a second time
        await stream.close()


async def test_a_client_of_json_is_asked_on_its_get_stream(session):
    stream = await session.listen()
    message = session.call_of(ONE, {}, 1)
    call = asyncio.create_task(session.send(message, headers={"Accept": "application/json"}))
    await answer(session, await stream.until("elicitation/create"))
    assert text_of(answer_to(await call, 1)) == "Hello, Ada!"
    await stream.close()


async def test_an_error_of_the_clients_is_a_dismissal_or_ends_the_call(session):
    for tool, method in (
        ("test_elicitation", "elicitation/create"),
        ("test_sampling", "sampling/createMessage"),
    ):
        stream = await session.open_stream(session.call_of(tool, {}, 1))
        asked = await stream.until(method)
        error = {"code": -32601, "message": "not here"}
        await session.send({"jsonrpc": "2.0", "id": asked["id"], "error": error})
        done = await stream.until(1)
        if tool == "test_elicitation":
            assert "action=cancel" in text_of(done)
        else:
            assert code_of(done) == "cancelled"
        await stream.close()


@pytest.mark.requirement("D2")
async def test_a_call_can_be_cancelled_while_its_client_is_asked(bridge, session):
    stream = await session.open_stream(session.call_of(ONE, {}, 1))
    asked = await stream.until("elicitation/create")
    await session.notify("notifications/cancelled", {"requestId": 1})
    assert code_of(await stream.until(1)) == "cancelled"
    await stream.close()
    assert (await answer(session, asked)).status == 202
    assert await open_calls(bridge) == 0


@pytest.mark.requirement("B6")
async def test_a_deleted_session_holds_no_call_open(bridge, session):
    stream = await session.open_stream(session.call_of(ONE, {}, 1))
    await stream.until("elicitation/create")
    assert await open_calls(bridge) == 1
    assert (await session.delete()).status == 204

    async def closed():
        return await open_calls(bridge) == 0

    await eventually(closed)
    await stream.close()


async def test_a_server_that_asks_what_was_not_declared_fails_the_call_alone(bridge):
    async with bridge.session("new", opened=False) as plain:
        hello = plain.initialize_of(1)
        hello["params"]["capabilities"] = {}
        response = await plain.send(hello)
        plain.session, plain.version = response.header("Mcp-Session-Id"), "2025-11-25"
        done, asked = await through(plain, ONE)
        assert (code_of(done), asked) == ("bad_answer", [])
        assert "elicitation" in error_of(done)["message"]
        assert await plain.text("gw_echo", value=1) == "1"


@pytest.mark.parametrize(
    "result",
    [
        {"inputRequests": []},
        {"inputRequests": {"a": 1}},
        {"inputRequests": {"a": {"method": "tools/call"}}},
        {"inputRequests": None},
        {"requestState": "for ever"},
        "deep",
    ],
    ids=str,
)
async def test_a_question_of_no_use_fails_the_call_alone(session, result):
    done, _ = await through(session, "gw_required", {"result": result})
    assert code_of(done) == "bad_answer"
    assert await session.text("gw_echo", value=1) == "1"


async def test_two_sessions_that_are_asked_the_same_answer_each_for_itself(bridge, session):
    async with bridge.session("new") as other:
        streams = [await each.open_stream(each.call_of(ONE, {}, 1)) for each in (session, other)]
        asked = [await stream.until("elicitation/create") for stream in streams]
        for who, question, name in ((other, asked[1], "Eve"), (session, asked[0], "Ada")):
            await answer(who, question, {"action": "accept", "content": {"name": name}})
        said = [text_of(await stream.until(1)) for stream in streams]
        assert said == ["Hello, Ada!", "Hello, Eve!"]
        for stream in streams:
            await stream.close()


@pytest.mark.requirement("E19")
async def test_a_modern_client_gets_the_servers_question_and_state_unchanged(bridge):
    async with bridge.modern("new") as client:
        result = {"inputRequests": {"q": {"method": "roots/list"}}, "requestState": "mcpb1.x é"}
        found = await client.call("gw_required", {"result": result})
        assert {key: found["result"][key] for key in result} == result
        params = {"name": "gw_params", "arguments": {}, "requestState": "mcpb1.x é"}
        params["inputResponses"] = {"q": {"roots": []}}
        seen = json.loads(text_of(await client.request("tools/call", params)))
        assert {key: seen[key] for key in params} == params
