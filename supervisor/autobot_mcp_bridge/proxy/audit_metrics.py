"""Whether calls are recorded and traced, and who tries to call without a token."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from autobot_mcp_bridge.policy.audit.outcome import Status
from autobot_mcp_bridge.policy.audit.traced import DROPS
from autobot_mcp_bridge.policy.audit.trail import AuditTrail


class AuditFamilies(Collector):
    """Of the one trail that a proxy has."""

    def __init__(self, trail: AuditTrail) -> None:
        self._trail = trail

    def collect(self) -> Iterator[Metric]:
        lines = CounterMetricFamily(
            "mcp_bridge_audit_lines", "Records of calls, by how the call ended", labels=["status"]
        )
        for status in Status:
            lines.add_metric([status.value], self._trail.lines[status])
        yield lines
        yield CounterMetricFamily(
            "mcp_bridge_audit_lost",
            "Records for which there was no room while the disk was full",
            value=self._trail.lost,
        )
        yield GaugeMetricFamily(
            "mcp_bridge_audit_ok",
            "0 while records cannot be written",
            value=float(self._trail.healthy),
        )
        yield CounterMetricFamily(
            "mcp_bridge_unauthorized",
            "Requests that were not let in",
            value=self._trail.bursts.refusals,
        )
        yield CounterMetricFamily(
            "mcp_bridge_unauthorized_bursts",
            "How often there were many of them at once",
            value=self._trail.bursts.alerts,
        )
        yield from self._spans()

    def _spans(self) -> Iterator[Metric]:
        tracer = self._trail.tracer
        exported = 0 if tracer is None else tracer.exported
        yield CounterMetricFamily(
            "mcp_bridge_spans_exported", "Spans that the collector has taken", value=exported
        )
        dropped = CounterMetricFamily(
            "mcp_bridge_spans_dropped",
            "Spans that no collector will have, by why",
            labels=["reason"],
        )
        for reason in DROPS:
            dropped.add_metric([reason], 0 if tracer is None else tracer.dropped[reason])
        yield dropped
