"""What Prometheus gets: read from the bridge when somebody asks, never kept twice."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.proxy.bridge import Bridge
from autobot_mcp_bridge.proxy.served import state_of
from autobot_mcp_bridge.supervision.breaker import BreakerState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class BridgeCollector(Collector):
    """Gives one family per metric, a sample per server."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def collect(self) -> Iterator[Metric]:
        calls = CounterMetricFamily(
            "mcp_bridge_calls",
            "Calls by outcome: ok, or the error's word",
            labels=["server", "outcome"],
        )
        starts = CounterMetricFamily("mcp_bridge_starts", "Processes started", labels=["server"])
        crashes = CounterMetricFamily(
            "mcp_bridge_crashes", "Ends that nobody asked for", labels=["server", "cause"]
        )
        dropped = CounterMetricFamily(
            "mcp_bridge_dropped_lines",
            "Lines and messages of the server that reached nobody",
            labels=["server", "reason"],
        )
        state = GaugeMetricFamily(
            "mcp_bridge_server_state",
            "1 for the state the server is in",
            labels=["server", "state"],
        )
        sessions = GaugeMetricFamily("mcp_bridge_sessions", "Live sessions", labels=["server"])
        open_calls = GaugeMetricFamily(
            "mcp_bridge_open_calls", "Calls in flight", labels=["server"]
        )
        breaker = GaugeMetricFamily(
            "mcp_bridge_breaker_open",
            "1 while crashes keep the server from starting",
            labels=["server"],
        )
        for served in self._bridge.routes.values():
            name = served.spec.instance
            counts = served.counts
            for outcome, number in sorted(counts.calls.items()):
                calls.add_metric([name, outcome], number)
            starts.add_metric([name], counts.starts)
            for cause, number in sorted(counts.crashes.items()):
                crashes.add_metric([name, cause], number)
            for reason, number in sorted(counts.dropped.items()):
                dropped.add_metric([name, reason], number)
            stderr = self._bridge.runtime.dropped_lines.get(name, 0)
            dropped.add_metric([name, "stderr_budget"], stderr)
            now, _ = state_of(served, self._bridge.packages.command)
            for each in State:
                state.add_metric([name, each.value], float(each is now))
            sessions.add_metric([name], len(served.shared.sessions))
            channel = served.instance.channel
            open_calls.add_metric([name], len(channel.pending) if channel is not None else 0)
            closed = served.instance.breaker.state is BreakerState.CLOSED
            breaker.add_metric([name], float(not closed))
        yield from (calls, starts, crashes, dropped, state, sessions, open_calls, breaker)
        yield GaugeMetricFamily(
            "mcp_bridge_config_ok",
            "0 while the configuration on the disk has a mistake",
            value=float(self._bridge.healthy),
        )


def exposition(bridge: Bridge) -> bytes:
    """All metrics in the text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(BridgeCollector(bridge))
    return generate_latest(registry)
