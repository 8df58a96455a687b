"""Spans that wait for a collector: so many and no more."""

import pytest

from autobot_mcp_bridge.config.tracing import trace_export
from autobot_mcp_bridge.model.host import Tracing
from autobot_mcp_bridge.tracing import exporter
from autobot_mcp_bridge.tracing.exporter import MAX_QUEUE, Exporter
from support.collector import Collector, never
from support.waiting import eventually


def settings(url, **environ):
    found, problems = trace_export(
        Tracing(endpoint=url), {"OTEL_BSP_SCHEDULE_DELAY": "1", **environ}
    )
    assert problems == ()
    return found


async def test_what_has_no_room_is_counted_and_the_rest_at_the_end(monkeypatch):
    monkeypatch.setattr(exporter, "FLUSH", 0.05)
    async with Collector() as collector:
        collector.misbehave = never
        async with Exporter(settings(collector.url)) as sender:
            sender.put(b"{}")
            await eventually(lambda: collector.bodies)
            for _ in range(MAX_QUEUE + 10):
                sender.put(b"{}")
            assert sender.dropped == {"queue_full": 10}
        assert sender.exported == 0
        assert sum(sender.dropped.values()) == MAX_QUEUE + 11
        assert sender.dropped["stopped"] == MAX_QUEUE + 1


async def test_every_span_is_counted_once(monkeypatch):
    async with Collector() as collector:
        async with Exporter(settings(collector.url)) as sender:
            for _ in range(700):
                sender.put(b"{}")
        assert sender.exported == len(collector.spans) == 700
        assert len(collector.bodies) == 3  # in parts
        assert not sum(sender.dropped.values())


async def test_a_fault_of_ours_costs_its_spans_alone(monkeypatch, caplog):
    async def broken(*_args):
        raise RuntimeError

    async with Collector() as collector:
        async with Exporter(settings(collector.url)) as sender:
            with monkeypatch.context() as patched:
                patched.setattr(sender, "_post", broken)
                sender.put(b"{}")
                await eventually(lambda: sender.dropped["undelivered"] == 1)
            sender.put(b"{}")
        assert sender.exported == 1
    assert "fault while exporting spans" in caplog.text


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        (b"", 0),
        (b"{}", 0),
        (b"[1]", 0),
        (b'{"partialSuccess":{"rejectedSpans":"2"}}', 2),
        (b'{"partialSuccess":{"rejectedSpans":-2}}', 0),
        (b'{"partialSuccess":{"rejectedSpans":99999999}}', exporter.MAX_BATCH),
        (b'{"partialSuccess":null}', 0),
    ],
)
def test_what_a_collector_says_it_has_not_taken(answer, number):
    assert exporter._rejected(answer) == number
