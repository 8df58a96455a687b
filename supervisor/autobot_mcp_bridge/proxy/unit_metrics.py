"""What running units use and may use: from the kernel's own files at each scrape, nothing kept."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.runtimes.base import Usage

_UNLIMITED = "; -1: unlimited"
# Metric: the attribute of Usage, and what it says. What a host does not tell has no sample.
_GAUGES = {
    "mcp_bridge_memory_current_bytes": ("memory", "Memory of all its processes, page cache too"),
    "mcp_bridge_memory_high_bytes": ("memory_high", f"Where it is slowed down{_UNLIMITED}"),
    "mcp_bridge_memory_max_bytes": ("memory_max", f"Where it is ended{_UNLIMITED}"),
    "mcp_bridge_tasks": ("tasks", "Its processes and threads"),
    "mcp_bridge_tasks_max": ("tasks_max", f"How many there may be{_UNLIMITED}"),
}
_COUNTERS = {
    "mcp_bridge_cpu_seconds": ("cpu", "Processor time of all its processes"),
    "mcp_bridge_cpu_throttled_seconds": ("throttled", "Time for which limits.cpu held it up"),
}


class UnitFamilies(Collector):
    """One family for each metric, a sample for each server that runs; counters are its process's."""

    def __init__(self, unread: int) -> None:
        of_server = ["server"]
        self._gauges = {
            attribute: GaugeMetricFamily(name, text, labels=of_server)
            for name, (attribute, text) in _GAUGES.items()
        }
        self._counters = {
            attribute: CounterMetricFamily(name, text, labels=of_server)
            for name, (attribute, text) in _COUNTERS.items()
        }
        self._events = CounterMetricFamily(
            "mcp_bridge_memory_events",
            "How often it met a memory limit: slowed down, at the limit, out of memory, ended",
            labels=["server", "event"],
        )
        self._out_of_band = GaugeMetricFamily(
            "mcp_bridge_limits_out_of_band",
            "1 where the memory limits in force are not those of servers.json",
            labels=of_server,
        )
        self._unread = CounterMetricFamily(
            "mcp_bridge_cgroup_read_errors",
            "Files of running servers' cgroups that could not be read",
            value=unread,
        )

    def add(self, spec: ServerSpec, used: Usage) -> None:
        name = [spec.instance]
        for attribute, gauge in self._gauges.items():
            if (value := getattr(used, attribute)) is not None:
                gauge.add_metric(name, value)
        for attribute, counter in self._counters.items():
            if (value := getattr(used, attribute)) is not None:
                counter.add_metric(name, value)
        for event, number in used.memory_events.items():
            self._events.add_metric([*name, event], number)
        if used.memory_max is not None:
            differs = used.differs(spec.limits.memory, spec.limits.memory_high)
            self._out_of_band.add_metric(name, float(differs))

    def collect(self) -> Iterator[Metric]:
        yield from (*self._gauges.values(), *self._counters.values())
        yield from (self._events, self._out_of_band, self._unread)
