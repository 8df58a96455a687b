"""Promises of the protocol that span both eras, or that only their absence would show."""

import asyncio
import hashlib
import json

import pytest
import pytest_asyncio

from support.bridge import Bridge, new_token
from support.client import Modern, Session, answer_to, code_of, error_of
from support.fakes import echo
from support.waiting import eventually
from support.wire import Connection

pytestmark = pytest.mark.asyncio(loop_scope="module")
CHANGED = "notifications/tools/list_changed"
TASK = '{"task": {"taskId": "T1", "status": "working"}}'


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bridge():
    async with Bridge([echo("files"), echo("slow", "--start", "0.5")]) as running:
        yield running


@pytest.mark.requirement("A18")
async def test_an_error_of_the_server_rides_on_200_in_a_session(bridge):
    async with bridge.session("files") as session:
        message = session.call_of("fail", {"code": -32050, "message": "own", "data": {"a": 1}}, 1)
        response = await session.send(message)

        assert response.status == 200
        wanted = {"code": -32050, "message": "own", "data": {"a": 1}}
        assert error_of(answer_to(response, 1)) == wanted


@pytest.mark.requirement("B12")
async def test_an_initialize_cannot_be_cancelled(bridge):
    async with bridge.session("files") as session:
        note = {"requestId": "initialize", "reason": "too late"}
        assert (await session.notify("notifications/cancelled", note)).status == 202
        state = json.loads(await session.text("state"))

        assert "notifications/cancelled" not in state["seen"]
        assert state["cancelled"] == []


@pytest.mark.requirement("B12")
async def test_a_client_that_leaves_during_initialize_cancels_nothing(bridge):
    async with bridge.session("slow", opened=False) as gone:
        sent = asyncio.create_task(gone.send(gone.initialize_of(1)))

        async def starting():
            return await bridge.state("slow") in {"waiting", "starting", "ready"}

        await eventually(starting)
        sent.cancel()
        await asyncio.gather(sent, return_exceptions=True)
    async with bridge.session("slow") as session:
        state = json.loads(await session.text("state"))

        assert "notifications/cancelled" not in state["seen"]
        assert await bridge.metric("mcp_bridge_starts_total", server="slow") == 1


@pytest.mark.requirement("C2", "C3")
async def test_a_get_stream_carries_no_answer_and_each_message_comes_once(bridge):
    async with bridge.session("files") as session:
        stream = await session.listen()
        response = await session.send(session.call_of("progress", {"nonce": "n"}, 1, "t"))
        methods = [message.get("method", "answer") for message in response.messages]
        async with bridge.modern("files") as caller:
            await caller.text("list_changed", tool="next")
        first = await stream.event()
        await stream.close()

        assert methods == ["notifications/progress"] * 3 + ["answer"]
        assert first["method"] == CHANGED, "what belongs to the call came here as well"


@pytest.mark.requirement("D6")
async def test_a_task_is_unknown_to_every_caller_but_its_own():
    other = new_token()
    digest = hashlib.sha256(other.encode()).hexdigest()
    async with Bridge([echo("files", tokens_sha256=[digest])]) as bridge:
        async with bridge.session("files") as mine, Session(bridge.url("files"), other) as theirs:
            params = {"name": "raw", "arguments": {"result": TASK}, "task": {"ttl": 1000}}
            made = await mine.request("tools/call", params)
            own = await mine.request("tasks/get", {"taskId": "T1"})
            foreign = await theirs.request("tasks/get", {"taskId": "T1"})
            unknown = await theirs.request("tasks/get", {"taskId": "T2"})
            seen = json.loads(await mine.text("state"))["seen"]

        assert made["result"]["task"]["taskId"] == "T1"
        # The server knows no tasks, so that its own error shows that the question reached it.
        assert error_of(own)["code"] == -32601
        assert code_of(foreign) == "task_unknown"
        assert error_of(foreign) == error_of(unknown)
        assert seen["tasks/get"] == 1


@pytest.mark.requirement("D7", "D4")
@pytest.mark.parametrize("era", ["session", "modern"])
async def test_trace_context_and_unknown_meta_keys_reach_the_server(bridge, era):
    meta = {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "a=b",
        "baggage": "c=d",
        "example.org/own": {"deep": [1, None]},
    }
    async with getattr(bridge, era)("files") as client:
        params = {"name": "mirror", "arguments": {}, "_meta": meta, "unknown": 1}
        answer = await client.request("tools/call", params)
        seen = json.loads(answer["result"]["content"][0]["text"])

        assert {key: seen["_meta"].get(key) for key in meta} == meta
        assert seen["unknown"] == 1


@pytest.mark.requirement("E11")
async def test_the_modern_era_ignores_a_session_id_and_makes_none(bridge):
    async with bridge.session("files") as session, bridge.modern("files") as client:
        for ident in ("junk", session.session):
            headers = {"Mcp-Session-Id": ident, "Last-Event-ID": "1"}
            response = await client.send(client.call_of("pid", {}, 1), headers=headers)

            assert response.status == 200
            assert response.header("Mcp-Session-Id") is None
            assert "result" in answer_to(response, 1)


@pytest.mark.requirement("E23", "F2")
async def test_a_connection_that_was_let_in_once_is_asked_again(bridge):
    right = Modern(bridge.url("files"), bridge.token("files"))
    message = right.prepare(right.call_of("pid", {}, 1))
    body = json.dumps(message).encode()
    let_in = right.headers(message)
    unknown = {name: value for name, value in let_in.items() if name != "Authorization"}
    wrong = {**let_in, "Authorization": f"Bearer {new_token()}"}
    connection = await Connection.open(bridge.base)
    try:
        statuses = [
            (await connection.request("POST", right.target, headers, body)).status
            for headers in (let_in, unknown, wrong, let_in)
        ]
    finally:
        await connection.close()

    assert statuses == [200, 401, 401, 200]


@pytest.mark.requirement("H8")
async def test_a_ping_of_the_server_is_answered(bridge):
    async with bridge.session("files") as session:
        assert json.loads(await session.text("ask", method="ping")) == {"result": {}}
