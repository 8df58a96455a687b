"""Traces without a collector, and with one that misbehaves: no call is any the worse for it."""

import asyncio
import sys

import pytest
from aiohttp import web

from support.audited import recorded
from support.bridge import Bridge
from support.collector import (
    PARENT,
    TRACE,
    Collector,
    exporting,
    mirrored,
    never,
    status,
    without_end,
)
from support.fakes import echo
from support.waiting import eventually

SENTINEL = "S3ntinel-0f-the-traces"
ALL = {"OTEL_EXPORTER_OTLP_HEADERS": f"x-key={SENTINEL}-header"}


# ---- a collector that misbehaves ----


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (status(400), "rejected"),
        (status(307, Location="/elsewhere"), "rejected"),
        (never, "undelivered"),
    ],
)
async def test_what_a_collector_does_not_take_is_counted_and_costs_no_call(how, reason):
    env = {**ALL, "OTEL_EXPORTER_OTLP_TIMEOUT": "200"}
    async with Collector() as collector:
        collector.misbehave = how
        async with Bridge([echo("files")], host=exporting(collector), env=env) as bridge:
            async with bridge.modern("files") as client:
                for _ in range(5):
                    assert await client.text("echo", text="x") == "x"

                async def dropped():
                    return await bridge.metric("mcp_bridge_spans_dropped_total", reason=reason)

                assert await eventually(dropped, within=30) > 0
                assert await client.text("echo", text="still") == "still"
            assert await bridge.metric("mcp_bridge_spans_exported_total") == 0
            assert bridge.log().count("spans are not taken") == 1
            assert SENTINEL not in bridge.log()
        assert collector.others == []  # nobody followed it


async def test_an_answer_without_end_is_not_read_to_its_end():
    async with Collector() as collector:
        collector.misbehave = without_end
        async with Bridge([echo("files")], host=exporting(collector)) as bridge:
            async with bridge.modern("files") as client:
                await client.text("echo", text="x")

                async def exported():
                    return await bridge.metric("mcp_bridge_spans_exported_total")

                await eventually(exported)
                assert await client.text("echo", text="y") == "y"


async def test_spans_that_a_collector_says_it_rejected_are_counted():
    async def partly(_request):
        said = {"partialSuccess": {"rejectedSpans": "1", "errorMessage": SENTINEL}}
        return web.json_response(said)

    async with Collector() as collector:
        collector.misbehave = partly
        async with Bridge([echo("files")], host=exporting(collector)) as bridge:
            async with bridge.modern("files") as client:
                await client.text("echo", text="x")

            async def rejected():
                return await bridge.metric("mcp_bridge_spans_dropped_total", reason="rejected")

            assert await eventually(rejected) >= 1
            assert await bridge.metric("mcp_bridge_spans_exported_total") >= 1
            assert SENTINEL not in bridge.log()


async def test_a_collector_that_is_away_costs_no_call_and_gets_the_spans_when_it_is_back():
    async with Collector() as collector:
        collector.misbehave = status(503)
        async with Bridge([echo("files")], host=exporting(collector)) as bridge:
            async with bridge.modern("files") as client:
                await client.text("echo", text="x")
                await eventually(lambda: collector.bodies)
                collector.misbehave = None
            await eventually(lambda: collector.spans, within=10)
            await eventually(lambda: "spans are taken" in bridge.log())


async def test_what_waits_is_sent_at_the_end():
    async with Collector() as collector:
        async with Bridge([echo("files")], host=exporting(collector)) as bridge:
            async with bridge.modern("files") as client:
                await client.text("echo", text="x")
        assert [span.kind for span in collector.spans if span.name == "tools/call echo"]


async def test_a_collector_that_never_answers_does_not_hold_up_the_end():
    async with Collector() as collector:
        collector.misbehave = never
        async with Bridge([echo("files")], host=exporting(collector)) as bridge:
            async with bridge.modern("files") as client:
                await client.text("echo", text="x")
            assert await bridge.stop() == 0
            await bridge.start()


# ---- off, and partly on ----


async def test_without_a_collector_meta_passes_value_for_value_and_records_are_as_before():
    given = {"traceparent": PARENT, "tracestate": "a=1,b=2", "baggage": "k=v"}
    async with Bridge([echo("files")]) as bridge:
        async with bridge.session("files") as client:
            assert await mirrored(client, meta=given, headers={"traceparent": PARENT}) == given
            assert await mirrored(client) is None
        (line, _) = await recorded(bridge, 2, tool="mirror")
        assert "trace_id" not in line
        assert await bridge.metric("mcp_bridge_spans_exported_total") == 0


async def test_nothing_is_imported_without_a_collector():
    code = (
        "import sys, autobot_mcp_bridge.cli.serve;"
        "print([name for name in sys.modules if name.startswith('autobot_mcp_bridge.tracing')])"
    )
    done = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code), stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        told, _ = await done.communicate()
    assert told == b"[]\n"


async def test_a_share_of_nothing_traces_those_alone_whose_callers_trace():
    async with Collector() as collector:
        host = {"tracing": {"endpoint": collector.url, "ratio": 0, "service_name": "ours"}}
        async with Bridge([echo("files")], host=host) as bridge:
            async with bridge.session("files") as client:
                assert await mirrored(client) is None
                assert (await mirrored(client, meta={"traceparent": PARENT}))["traceparent"]
            await collector.of("tools/call mirror")
            assert {span.trace for span in collector.spans} == {TRACE}
            assert {span.resource["service.name"] for span in collector.spans} == {"ours"}


async def test_the_standard_variables_alone_are_enough():
    async with Collector() as collector:
        env = {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector.url}/v1/traces",
            "OTEL_SERVICE_NAME": "named",
        }
        async with Bridge([echo("files")], env=env) as bridge:
            async with bridge.modern("files") as client:
                await client.text("echo", text="x")
            span = (await collector.of("tools/call echo"))["server"]
    assert span.resource["service.name"] == "named"


async def test_a_variable_that_cannot_be_done_turns_traces_off_and_is_told_without_its_value():
    async with Collector() as collector:
        env = {"OTEL_TRACES_SAMPLER": f"jaeger-{SENTINEL}"}
        async with Bridge([echo("files")], host=exporting(collector), env=env) as bridge:
            async with bridge.session("files") as client:
                assert await mirrored(client) is None
            assert "calls are not traced: environment: OTEL_TRACES_SAMPLER" in bridge.log()
            assert SENTINEL not in bridge.log()
        assert collector.bodies == []
