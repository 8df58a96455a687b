"""What Prometheus gets of the egress proxy, which has no port of its own: its counts, from its file."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from autobot_mcp_bridge.egress.counts import Counts


class EgressFamilies(Collector):
    """A sample for each server that has connected to it; families without one are left out."""

    def __init__(self, counts: Mapping[str, Counts]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        if not self._counts:
            return
        carried = CounterMetricFamily(
            "mcp_bridge_egress_connections",
            "Connections that have reached a listed host",
            labels=["server"],
        )
        refused = CounterMetricFamily(
            "mcp_bridge_egress_refusals",
            "Connections that were not let through",
            labels=["server", "reason"],
        )
        there = GaugeMetricFamily(
            "mcp_bridge_egress_open", "Connections that are open", labels=["server"]
        )
        for instance, counts in sorted(self._counts.items()):
            carried.add_metric([instance], counts.carried)
            for word, number in sorted(counts.refused.items()):
                refused.add_metric([instance, word], number)
            there.add_metric([instance], counts.open)
        yield from (carried, refused, there)
