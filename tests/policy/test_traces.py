"""Calls as OpenTelemetry spans: what a collector gets, what a server is told, and what neither sees."""

import asyncio
import json

import pytest
import pytest_asyncio

from support.audited import calls
from support.bridge import Bridge
from support.client import code_of
from support.collector import PARENT, SPAN, TRACE, Collector, exporting, mirrored
from support.eras import conformance
from support.fakes import echo
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALM = {"breaker": {"crashes": 1000}}
UNSAMPLED = f"00-{TRACE}-{SPAN}-00"
SENTINEL = "S3ntinel-0f-the-traces"
ALL = {"OTEL_EXPORTER_OTLP_HEADERS": f"x-key={SENTINEL}-header"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def collector():
    async with Collector() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge(collector):
    servers = [
        echo("files", "--tools", "denied", tools={"deny": ["denied"]}, **CALM),
        echo("quick", timeouts={"call": "300ms"}, **CALM),
        echo("own", sessions="isolated", **CALM),
        echo("web", tenant="acme", project="site"),
        echo("secret", env={"API_TOKEN": f"{SENTINEL}-env"}),
        conformance("new", "modern"),
    ]
    env = {
        **ALL,
        "OTEL_BSP_SCHEDULE_DELAY": "20",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=tests%20here",
    }
    async with Bridge(servers, host=exporting(collector), env=env) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh(collector):
    collector.forget()


@pytest.fixture(params=["session", "modern"])
def make(request, bridge):
    return getattr(bridge, request.param)


# ---- what a collector gets ----


@pytest.mark.parametrize("instance", ["files", "own"])
async def test_a_call_is_a_span_of_the_proxy_and_one_of_the_exchange(
    bridge, collector, make, instance
):
    async with make(instance) as client:
        await client.text("echo", text=SENTINEL)
    spans = await collector.of("tools/call echo")
    server, client_span = spans["server"], spans["client"]
    assert client_span.parent == server.id
    assert server.parent == ""
    assert server.began <= client_span.began <= client_span.ended <= server.ended
    told = server.attributes
    assert told["mcp.method.name"] == "tools/call"
    assert (told["gen_ai.tool.name"], told["gen_ai.operation.name"]) == ("echo", "execute_tool")
    assert (told["network.transport"], told["network.protocol.name"]) == ("tcp", "http")
    assert client_span.attributes["network.transport"] == "pipe"
    assert (told["mcp_bridge.tenant"], told["mcp_bridge.instance"]) == ("default", instance)
    assert told["mcp_bridge.era"] == (
        "modern" if type(client).__name__ == "Modern" else "handshake"
    )
    assert told["jsonrpc.request.id"].isdecimal()
    assert not server.failed and "error.type" not in told
    assert server.resource["service.name"] == "mcp-bridge"
    assert server.resource["deployment.environment.name"] == "tests here"


async def test_project_and_tenant_are_told(bridge, collector):
    async with bridge.modern("acme.site.web") as client:
        await client.text("echo", text="x")
    await eventually(
        lambda: any(s.attributes.get("mcp_bridge.project") == "site" for s in collector.spans)
    )


async def test_a_session_is_told_by_a_name_that_opens_nothing(bridge, collector):
    async with bridge.session("files") as session:
        collector.forget()
        await session.text("counter")
        await session.text("pid")
        first = (await collector.of("tools/call counter"))["server"]
        second = (await collector.of("tools/call pid"))["server"]
    assert first.attributes["mcp.session.id"] == second.attributes["mcp.session.id"]
    assert first.attributes["mcp.protocol.version"] == "2025-11-25"
    assert session.session.encode() not in b"".join(collector.bodies)


async def test_a_start_is_a_span_of_the_call_that_waits_for_it(bridge, collector):
    async with bridge.modern("files") as client:
        await client.text("pid")
        await client.call("kill")
        await bridge.in_state("files", "sleeping")
        collector.forget()
        await client.text("pid")
    span = (await collector.of("tools/call pid"))["server"]
    (start,) = [s for s in collector.spans if s.name == "instance.start"]
    assert (start.trace, start.parent, start.kind) == (span.trace, span.id, "internal")
    assert span.began <= start.began <= start.ended <= span.ended


async def refused(client):
    return await client.call("denied")


async def failed(client):
    return await client.call("fail", {"code": -32077, "message": SENTINEL})


async def failed_tool(client):
    return await client.call("raw", {"result": '{"content":[],"isError":true}'})


async def crashed(client):
    return await client.call("kill")


@pytest.mark.parametrize(
    ("make_call", "tool", "error", "code", "kinds"),
    [
        (refused, "denied", "tool_denied", "-32602", {"server"}),
        (failed, "fail", "-32077", "-32077", {"server", "client"}),
        (failed_tool, "raw", "tool_error", None, {"server", "client"}),
        (crashed, "kill", "server_crashed", ..., {"server", "client"}),
    ],
)
async def test_a_failure_is_told_by_its_word_alone(
    bridge, collector, make, make_call, tool, error, code, kinds
):
    async with make("files") as client:
        collector.forget()
        await make_call(client)
    spans = await collector.of(f"tools/call {tool}", len(kinds))
    assert set(spans) == kinds
    for span in spans.values():
        assert span.failed and span.message == ""
        assert span.attributes["error.type"] == error
        if code is not ...:
            assert span.attributes.get("rpc.response.status_code") == code


async def test_a_call_that_takes_too_long_and_one_that_is_cancelled(bridge, collector, make):
    async with make("quick") as client:
        assert code_of(await client.call("wait", {"tag": "t"})) == "call_timeout"
    spans = await collector.of("tools/call wait")
    assert spans["client"].attributes["error.type"] == "call_timeout"


async def test_a_call_that_its_client_cancels(bridge, collector):
    async with bridge.session("files") as session:
        call = asyncio.create_task(session.send(session.call_of("wait", {"tag": "c"}, 5)))
        async with bridge.modern("files") as other:

            async def waiting():
                return "c" in json.loads(await other.text("state"))["waiting"]

            await eventually(waiting)
        await session.notify("notifications/cancelled", {"requestId": 5, "reason": SENTINEL})
        await call
    span = (await collector.of("tools/call wait"))["server"]
    assert span.attributes["error.type"] == "cancelled"
    notice = (await collector.of("notifications/cancelled", 1))["server"]
    assert "jsonrpc.request.id" not in notice.attributes


async def test_each_request_of_a_batch_has_its_own(bridge, collector):
    async with bridge.session("files", version="2025-03-26") as session:
        collector.forget()
        await session.send([session.call_of("echo", {"text": "a"}), session.call_of("pid", {})])
    one = (await collector.of("tools/call echo"))["server"]
    other = (await collector.of("tools/call pid"))["server"]
    assert one.trace != other.trace


async def test_what_the_proxy_answers_has_no_exchange(bridge, collector):
    async with bridge.session("files") as session:
        await session.request("ping")
        await session.text("counter")
    assert set(await collector.of("ping", 1)) == {"server"}  # its span would be the last of both
    assert set(await collector.of("tools/call counter")) == {"server", "client"}


async def test_a_server_of_the_modern_era_is_told_too(bridge, collector):
    async with bridge.modern("new") as client:
        await client.text("gw_pid")
    assert set(await collector.of("tools/call gw_pid")) == {"server", "client"}


async def test_each_request_about_a_task_is_a_call_of_its_own(bridge, collector):
    task = {"taskId": "t-1", "status": "working", "ttl": 1000}
    async with bridge.session("files") as session:
        made = json.dumps({"task": task})
        params = {"name": "raw", "arguments": {"result": made}, "task": {"ttl": 1000}}
        assert (await session.request("tools/call", params))["result"] == {"task": task}
        await session.request("tasks/get", {"taskId": "t-1"})
        await session.request("tasks/get", {"taskId": "t-2"})
    made = await collector.of("tools/call raw")
    assert set(made) == {"server", "client"}

    def of_tasks():
        return [span for span in collector.spans if span.name == "tasks/get"]

    await eventually(lambda: len(of_tasks()) == 3)
    asked, unknown = ([s for s in of_tasks() if s.kind == kind] for kind in ("client", "server"))
    assert len(asked) == 1  # the other is nobody's, and its server was not asked
    assert {span.attributes["error.type"] for span in unknown} == {"-32601", "task_unknown"}
    assert b"t-1" not in b"".join(collector.bodies)


async def test_strangers_make_no_trace(bridge, collector):
    async with bridge.session("files", token="mcpb_" + "x" * 43, opened=False) as stranger:
        collector.forget()
        headers = {"traceparent": PARENT}
        response = await stranger.send(stranger.call_of("echo", {}), headers=headers)
        assert response.status == 401
    async with bridge.modern("files") as client:
        await client.text("counter")
    await collector.of("tools/call counter")
    assert {span.name for span in collector.spans} == {"tools/call counter"}


# ---- context ----


@pytest.mark.parametrize("instance", ["files", "own"])
async def test_the_server_is_told_our_span_as_its_parent(bridge, collector, make, instance):
    async with make(instance) as client:
        meta = await mirrored(client)
    spans = await collector.of("tools/call mirror")
    assert meta["traceparent"] == f"00-{spans['client'].trace}-{spans['client'].id}-01"


async def test_a_callers_trace_goes_on_in_meta(bridge, collector, make):
    given = {"traceparent": PARENT, "tracestate": "a=1", "baggage": "k=v", "own/key": [1]}
    async with make("files") as client:
        meta = await mirrored(client, meta=given)
    spans = await collector.of("tools/call mirror")
    assert (spans["server"].trace, spans["server"].parent) == (TRACE, SPAN)
    assert spans["server"].state == "a=1"
    assert meta["traceparent"] == f"00-{TRACE}-{spans['client'].id}-01"
    assert (meta["tracestate"], meta["baggage"], meta["own/key"]) == ("a=1", "k=v", [1])


async def test_a_callers_trace_goes_on_in_headers(bridge, collector, make):
    headers = {"traceparent": PARENT, "tracestate": "b=2", "baggage": "k=w"}
    async with make("files") as client:
        meta = await mirrored(client, headers=headers)
    spans = await collector.of("tools/call mirror")
    assert (spans["server"].trace, spans["server"].parent) == (TRACE, SPAN)
    assert meta["traceparent"] == f"00-{TRACE}-{spans['client'].id}-01"
    assert (meta["tracestate"], meta["baggage"]) == ("b=2", "k=w")


async def test_of_two_contexts_that_of_the_message_is_the_parent(bridge, collector, make):
    around = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"
    async with make("files") as client:
        await mirrored(client, meta={"traceparent": PARENT}, headers={"traceparent": around})
    server = (await collector.of("tools/call mirror"))["server"]
    assert (server.trace, server.parent) == (TRACE, SPAN)
    assert server.links == [("1" * 32, "2" * 16)]


async def test_a_caller_that_does_not_trace_is_not_traced_and_nothing_is_changed(
    bridge, collector, make
):
    given = {"traceparent": UNSAMPLED, "tracestate": "a=1"}
    async with make("files") as client:
        collector.forget()
        meta = await mirrored(client, meta=given)
        await client.text("counter")
    await collector.of("tools/call counter")
    assert {name: meta[name] for name in given} == given
    assert "tools/call mirror" not in {span.name for span in collector.spans}


async def test_a_notification_of_a_private_session_carries_the_trace(bridge, collector):
    async with bridge.session("own") as session:
        collector.forget()
        await session.notify("notifications/roots/list_changed")
    span = (await collector.of("notifications/roots/list_changed", 1))["server"]
    assert span.attributes["mcp.method.name"] == "notifications/roots/list_changed"


async def test_the_record_of_a_call_names_its_trace(bridge, collector):
    async with bridge.modern("files") as client:
        await mirrored(client, meta={"traceparent": PARENT.replace("4bf", "5cf")})
    await eventually(
        lambda: [c for c in calls(bridge, tool="mirror") if c.get("trace_id", "")[:3] == "5cf"]
    )


# ---- what nobody sees ----


async def test_no_secret_argument_or_result_is_in_what_was_sent(bridge, collector, make):
    async with make("secret") as client:
        collector.forget()
        await client.text("echo", text=SENTINEL)
        await client.text("env")
        await client.call("fail", {"code": -1, "message": SENTINEL, "data": SENTINEL})
        await client.call("stderr", {"lines": 1, "text": SENTINEL})
        await client.request("resources/read", {"uri": f"note:///{SENTINEL}"})
        await client.request("completion/complete", {"ref": {"name": SENTINEL}})
        await client.call(f"no-{SENTINEL}-env")
        await client.call("kill", {"why": SENTINEL})
        await client.text("counter")
    await collector.of("tools/call counter")
    sent = b"".join(collector.bodies)
    assert b"tools/call fail" in sent
    assert SENTINEL.encode() not in sent
    assert bridge.token("secret").encode() not in sent
    assert collector.headers[-1]["x-key"] == f"{SENTINEL}-header"
    assert SENTINEL not in bridge.log()


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"prompts/get"}',
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/call","params":{"name":"echo"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"\\ud800/\\ud800","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":{},"_meta":7}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"traceparent":{}}}}',
        b'{"jsonrpc":"2.0","method":"tools/call","params":{"_meta":[]}}',
        b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % (b"9" * 40),
    ],
)
async def test_whatever_a_client_sends_is_no_fault_and_takes_no_other_span_with_it(
    bridge, collector, body
):
    async with bridge.session("files") as session:
        response = await session.send(body=body)
        assert response.status < 500, response
        await session.text("counter")
    await collector.of("tools/call counter")
    assert await bridge.metric("mcp_bridge_spans_dropped_total") == 0


async def test_names_are_bounded(bridge, collector):
    name = "n" * 5000
    async with bridge.session("files") as session:
        collector.forget()
        await session.call(name)
        await session.text("counter")
    await collector.of("tools/call counter")
    assert b"n" * 200 not in b"".join(collector.bodies)
