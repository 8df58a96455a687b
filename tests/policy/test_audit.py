"""Each call leaves exactly one line, whatever its end, through the real proxy (SM-79, SM-F5)."""

import asyncio
import json
import os
import signal
from collections import Counter
from random import Random

import pytest
import pytest_asyncio

from support.audited import calls, everything, recorded, verified
from support.bridge import Bridge
from support.client import answer_to, code_of
from support.eras import FEATURES, NAME, conformance, isolated, modern
from support.fakes import echo
from support.waiting import eventually
from support.wire import exchange

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASKS = "test_input_required_result_elicitation"
CALM = {"breaker": {"crashes": 1000}}
SENTINEL = "S3ntinel-0f-the-tests"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    servers = [
        echo("files", "--tools", "denied", tools={"deny": ["denied"]}, **CALM),
        echo("quick", timeouts={"call": "300ms"}, **CALM),
        echo("own", sessions="isolated", **CALM),
        echo("web", tenant="acme", project="site"),
        echo("fragile", breaker={"crashes": 1}),
        conformance("new", "modern"),
        isolated("old", "legacy"),
    ]
    async with Bridge(servers, host={"audit": {"stderr": "all"}}) as running:
        yield running
        assert verified(running)["clean"]


@pytest.fixture(params=["session", "modern"])
def make(request, bridge):
    return getattr(bridge, request.param)


class Lines:
    """The lines that come after this moment: `await Lines.of(bridge)`."""

    def __init__(self, bridge, before):
        self._bridge, self._before = bridge, before

    @classmethod
    async def of(cls, bridge):
        return cls(bridge, len(await settled(bridge)))

    async def one(self, **fields):
        """The only one there is, which says this."""
        await eventually(lambda: len(calls(self._bridge)) > self._before, what="a line")
        (line,) = (await settled(self._bridge))[self._before :]
        assert {name: line[name] for name in fields} == fields
        return line


async def settled(bridge):
    """The lines, once all are written that the proxy has counted."""

    async def whole():
        counted = await bridge.metric("mcp_bridge_audit_lines_total")
        found = calls(bridge)
        return found if len(found) == counted else []

    return await eventually(whole) if await bridge.metric("mcp_bridge_audit_lines_total") else []


# ---- ends ----


@pytest.mark.requirement("SM-79")
async def test_a_call_that_goes_well(bridge, make):
    async with make("files") as client:
        lines = await Lines.of(bridge)
        await client.text("echo", text="hello")
    line = await lines.one(
        event="tool_call", level="info", tool="echo", status="ok", error=None, method="tools/call"
    )
    assert line["args"] == {"text": "hello"}
    assert (line["tenant"], line["project"], line["instance"]) == ("default", None, "files")
    assert line["client"] == "127.0.0.1"
    assert line["elapsed_ms"] > 0
    assert bridge.token("files") not in json.dumps(line)


async def test_the_line_names_tenant_project_server_and_era(bridge):
    lines = await Lines.of(bridge)
    async with bridge.modern("acme.site.web") as client:
        await client.text("echo", text="x")
    await lines.one(
        tenant="acme", project="site", server="web", instance="acme.site.web", era="modern"
    )


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {"uri": "note:///one"}),
        ("prompts/get", {"name": "greet"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "greet"}}),
    ],
)
async def test_what_else_is_called(bridge, make, method, params):
    async with make("files") as client:
        lines = await Lines.of(bridge)
        await client.request(method, params)
    line = await lines.one(method=method, tool=None)
    assert line["args"] == params


async def test_lists_and_first_words_leave_none(bridge, make):
    async with make("files") as client:
        lines = await Lines.of(bridge)
        await client.tools()
        await client.request("resources/list")
        await client.text("echo", text="last")
    await lines.one(args={"text": "last"})


async def test_a_tool_that_fails_and_an_error_of_the_servers(bridge, make):
    async with make("files") as client:
        lines = await Lines.of(bridge)
        await client.call("raw", {"result": '{"content":[],"isError":true}'})
        await lines.one(event="tool_error", level="warning", status="error", error="tool_failed")
        lines = await Lines.of(bridge)
        await client.call("fail", {"code": -32001, "message": SENTINEL})
        line = await lines.one(status="error", error="rpc_error", code=-32001)
    assert SENTINEL not in json.dumps({**line, "args": None})  # what a server says is none of it


async def test_a_tool_that_is_not_allowed(bridge, make):
    async with make("files") as client:
        lines = await Lines.of(bridge)
        await client.call("denied")
    await lines.one(
        event="scope_violation", level="warning", tool="denied", status="blocked", code=-32602
    )


async def test_a_method_that_is_not_known(bridge, make):
    async with make("files") as client:
        lines = await Lines.of(bridge)
        await client.request("no/such", {"x": 1})
    await lines.one(method="no/such", status="blocked", error="method_denied")


async def test_a_call_in_a_session_that_is_anothers(bridge):
    async with bridge.session("files") as session:
        token = await bridge.more_token("files")
        async with bridge.session("files", token=token, opened=False) as other:
            other.session, other.version = session.session, session.version
            for method in ("GET", "DELETE"):
                lines = await Lines.of(bridge)
                assert (await other.send(method=method)).status == 404
                await lines.one(method=method, status="blocked", error="session_unknown")
            lines = await Lines.of(bridge)
            assert (await other.send(other.call_of("echo", {}))).status == 404
            line = await lines.one(tool="echo", status="blocked", error="session_unknown")
        lines = await Lines.of(bridge)
        await session.text("echo", text="x")
        own = await lines.one()
    assert own["session_id"] == line["session_id"]
    assert own["principal"] != line["principal"]
    assert session.session not in json.dumps(everything(bridge))


async def test_headers_that_do_not_fit_the_body(bridge):
    async with bridge.modern("files") as client:
        lines = await Lines.of(bridge)
        response = await client.send(client.call_of("echo", {}), headers={"Mcp-Name": "state"})
        assert response.status == 400
    await lines.one(tool="echo", status="blocked", error="refused")


@pytest.mark.parametrize("instance", ["files", "own"])
async def test_a_server_that_dies_of_it(bridge, make, instance):
    async with make(instance) as client:
        await client.text("pid")
        lines = await Lines.of(bridge)
        await client.call("kill")
    line = await lines.one(tool="kill", status="error", error="server_crashed")
    assert "SIGKILL" in line["message"]
    assert line["cause"] == "signal"


async def test_a_call_that_takes_too_long(bridge, make):
    async with make("quick") as client:
        lines = await Lines.of(bridge)
        answer = await client.call("wait", {"tag": "t"})
        assert code_of(answer) == "call_timeout"
    line = await lines.one(tool="wait", status="timeout", error="call_timeout")
    assert line["elapsed_ms"] >= 290


async def waiting(bridge, instance, tag):
    async with bridge.modern(instance) as other:
        return tag in json.loads(await other.text("state"))["waiting"]


async def test_a_call_that_its_client_cancels(bridge):
    async with bridge.session("files") as session:
        call = asyncio.create_task(session.send(session.call_of("wait", {"tag": "cancel"}, 5)))
        await eventually(lambda: waiting(bridge, "files", "cancel"))
        lines = await Lines.of(bridge)
        await session.notify("notifications/cancelled", {"requestId": 5})
        assert code_of(answer_to(await call, 5)) == "cancelled"
    await lines.one(tool="wait", status="cancelled", error="cancelled")


async def test_a_client_that_goes_before_its_answer(bridge, make):
    async with make("files") as client:
        call = asyncio.create_task(client.send(client.call_of("wait", {"tag": "gone"})))
        await eventually(lambda: waiting(bridge, "files", "gone"))
        await eventually(lambda: len(calls(bridge, tool="state", status="ok")) > 0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await eventually(lambda: calls(bridge, tool="wait", error="client_gone"))
        async with bridge.modern("files") as other:
            await other.text("release", tag="gone")
    found = [line for line in calls(bridge, tool="wait") if line["args"] == {"tag": "gone"}]
    assert {(line["status"], line["error"]) for line in found} == {("cancelled", "client_gone")}
    assert len(found) == len({line["era"] for line in found})


async def test_a_streamed_call_whose_connection_breaks_ends_with_its_answer(bridge):
    async with bridge.session("files") as session:
        message = session.call_of(
            "progress", {"nonce": "n", "steps": 1, "then": "wait"}, 3, "token"
        )
        stream = await session.open_stream(message)
        await stream.until("notifications/progress")
        await stream.close()
        assert calls(bridge, tool="progress") == []
        async with bridge.modern("files") as other:
            await other.text("release", tag="n")
        again = await session.listen(after=stream.last_id)
        await again.until(3)
        await again.close()
        (line,) = await recorded(bridge, 1, tool="progress")
    assert line["status"] == "ok"


async def test_each_call_of_a_batch(bridge):
    async with bridge.session("files", version="2025-03-26") as session:
        batch = [
            session.call_of("echo", {"text": "batch"}),
            session.call_of("denied", {"text": "batch"}),
            session.request_of("tools/list"),
            {"jsonrpc": "2.0", "method": "notifications/x"},
        ]
        await session.send(batch)
    found = await recorded(bridge, 2, args={"text": "batch"})
    assert {line["tool"]: line["status"] for line in found} == {"echo": "ok", "denied": "blocked"}


async def test_a_call_whose_client_is_asked_within_it(bridge):
    """To a handshake client it is one call, however often a modern server has it made again."""
    async with bridge.session("new") as session:
        lines = await Lines.of(bridge)
        stream = await session.open_stream(session.call_of(ASKS, {}, 1))
        question = await stream.event()
        await session.send({"jsonrpc": "2.0", "id": question["id"], "result": NAME})
        assert "result" in await stream.event()
        await stream.close()
        await lines.one(tool=ASKS, status="ok")


async def test_a_call_that_is_held_is_a_request_each_time(bridge):
    """A modern client makes a request each time; the one that only asked says so."""
    async with modern(bridge, "old", **FEATURES) as client:
        lines = await Lines.of(bridge)
        result = (await client.call(ASKS))["result"]
        await lines.one(tool=ASKS, status="ok", message="input_required")
        lines = await Lines.of(bridge)
        answers = dict.fromkeys(result["inputRequests"], NAME)
        await client.retry(ASKS, result["requestState"], answers)
        line = await lines.one(tool=ASKS, status="ok")
    assert "message" not in line


async def test_a_server_that_is_not_started_any_more(bridge):
    async with bridge.session("fragile") as session:
        for _ in range(2):
            await session.call("kill")
        await bridge.in_state("fragile", "broken")
        lines = await Lines.of(bridge)
        answer = answer_to(await session.send(session.call_of("echo", {}, 1)), 1)
        assert code_of(answer) == "breaker_open"
    await lines.one(tool="echo", status="blocked", error="breaker_open")


async def test_a_server_that_is_stopped_with_the_call_in_flight(bridge, make):
    async with make("files") as client:
        call = asyncio.create_task(client.send(client.call_of("wait", {"tag": "stop"})))
        await eventually(lambda: waiting(bridge, "files", "stop"))
        lines = await Lines.of(bridge)
        await bridge.command("files", "stop")
        await call
        await lines.one(tool="wait", status="error", error="server_stopped")
        lines = await Lines.of(bridge)
        await client.send(client.call_of("echo", {}))
        await lines.one(tool="echo", status="blocked", error="stopped_by_operator")
        await bridge.command("files", "start")


@pytest.mark.requirement("SM-08", "SM-09")
async def test_many_tries_without_a_token_are_told_once(bridge):
    for number in range(12):
        headers = {"Authorization": f"Bearer not-a-token-{number}"}
        assert (await exchange(bridge.url("files"), "POST", headers, b"{}")).status == 401

    await eventually(lambda: "requests without a valid token" in bridge.log())
    assert bridge.log().count("requests without a valid token") == 1
    assert await bridge.metric("mcp_bridge_unauthorized_total") >= 12
    assert await bridge.metric("mcp_bridge_unauthorized_bursts_total") == 1
    assert "not-a-token" not in bridge.log()


@pytest.mark.requirement("SM-80")
async def test_stderr_has_the_very_lines_of_the_file(bridge):
    async with bridge.modern("files") as client:
        await client.text("echo", text="told")
    await recorded(bridge, 1, args={"text": "told"})
    said = [line for line in bridge.log().splitlines() if line.startswith('{"timestamp"')]
    kept = (bridge.state_dir / "audit.d/audit.jsonl").read_text().splitlines()

    assert set(said) <= set(kept)
    assert [line for line in said if '"told"' in line]


# ---- the proxy's own ends ----


async def test_calls_in_flight_at_sigterm_have_their_lines(tmp_path):
    async with Bridge([echo("files")]) as bridge:
        async with bridge.session("files") as session, bridge.modern("files") as client:
            sent = [
                asyncio.create_task(each.send(each.call_of("wait", {"tag": f"t{number}"})))
                for number in range(5)
                for each in (session, client)
            ]
            stream = await session.open_stream(
                session.call_of("progress", {"nonce": "p", "steps": 1, "then": "wait"}, 3, "p")
            )
            await stream.until("notifications/progress")
            await eventually(lambda: waiting(bridge, "files", "t4"))
            before = len(calls(bridge, tool="state"))
            await bridge.stop()
            await asyncio.gather(*sent, return_exceptions=True)
            await stream.close()
        found = [line for line in calls(bridge) if line["tool"] != "state"]
        assert len(found) == 11, Counter((line["tool"], line["error"]) for line in found)
        assert "ok" not in {line["status"] for line in found}
        assert len(calls(bridge, tool="state")) >= before
        assert verified(bridge)["clean"]
        await bridge.start()
        assert everything(bridge)[-1]["unrecorded"] == 0


async def test_after_a_sigkill_the_chain_says_how_many_calls_have_no_line():
    async with Bridge([echo("files")]) as bridge:
        async with bridge.modern("files") as client:
            await client.text("echo", text="x")
            await recorded(bridge, 1)
            sent = [
                asyncio.create_task(client.send(client.call_of("wait", {"tag": f"t{number}"})))
                for number in range(7)
            ]
            await eventually(lambda: waiting(bridge, "files", "t6"))
            await settled(bridge)
            open_now = await bridge.metric("mcp_bridge_open_calls", server="files")
            assert open_now == 7
            os.kill(bridge.pid, signal.SIGKILL)
            await asyncio.gather(*sent, return_exceptions=True)
            await bridge.process.wait()
        before = len(everything(bridge))
        await bridge.start()
        started = await eventually(lambda: everything(bridge)[before:])
        assert (started[0]["event"], started[0]["unrecorded"]) == ("audit_started", 7)
        assert verified(bridge)["clean"]


# ---- many ----


async def test_a_storm_of_calls_has_as_many_lines(record_property):
    random = Random(8)
    servers = [echo("one", "--tools", "denied", tools={"deny": ["denied"]}, **CALM)]
    servers += [
        echo("two", timeouts={"call": "500ms"}, **CALM),
        echo("three", sessions="isolated", **CALM),
    ]
    kinds = ["echo"] * 12 + ["denied", "wait", "raw", "kill", "gone", "resources"]
    sent = Counter()

    async def act(client, number):
        kind = random.choice(kinds)
        sent[kind] += 1
        match kind:
            case "resources":
                message = client.request_of("resources/read", {"uri": "note:///one"})
            case "gone":
                message = client.call_of("echo", {"delay": 5})
            case "wait":
                message = client.call_of("wait", {"tag": str(number)})
            case "raw":
                message = client.call_of("raw", {"result": '{"isError":true}'})
            case _:
                message = client.call_of(kind, {"text": "x"})
        call = asyncio.create_task(client.send(message, within=30))
        if kind in ("gone", "wait"):
            await asyncio.wait([call], timeout=random.random() / 5)
            if not call.done():
                call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    async def client_of(bridge, number):
        instance = random.choice(["one", "two", "three"])
        # A session of an isolated server ends with its process: then each call is refused.
        make = random.choice([bridge.session, bridge.modern])
        async with make(instance) as client:
            for each in range(30):
                await act(client, each)

    async with Bridge(servers, host={"audit": {"max_bytes": "64K", "backups": 100}}) as bridge:
        await asyncio.gather(*(client_of(bridge, number) for number in range(20)))
        total = sum(sent.values())
        await eventually(lambda: len(calls(bridge)) >= total, within=20, what=f"{total} lines")
        await bridge.stop()
        found = calls(bridge)
        assert len(found) == total, (sent, Counter(line["tool"] for line in found))
        assert {line["status"] for line in found} >= {"ok", "blocked", "error", "cancelled"}
        verdict = verified(bridge)
        assert verdict["clean"], verdict["faults"]
        record_property("audit_lines_of_calls_sent", f"{len(found)}/{total}")
