"""What this host keeps of the sandbox, as root has found it out."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from autobot_mcp_bridge.model.promises import Facts


class HostFamilies(Collector):
    """A sample for each promise; none where nobody has tried them."""

    def __init__(self, facts: Facts) -> None:
        self._enforces = GaugeMetricFamily(
            "mcp_bridge_host_enforces",
            "1 where this host keeps a promise of the sandbox, as was tried",
            labels=["promise"],
        )
        for promise, found in facts.items():
            self._enforces.add_metric([promise.value], float(found.kept))

    def collect(self) -> Iterator[Metric]:
        yield self._enforces
