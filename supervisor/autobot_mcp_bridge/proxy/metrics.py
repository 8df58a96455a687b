"""What Prometheus gets: read from the bridge when somebody asks, never kept twice."""

import asyncio
import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from autobot_mcp_bridge.config import disk
from autobot_mcp_bridge.egress import counts
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.proxy.audit_metrics import AuditFamilies
from autobot_mcp_bridge.proxy.bridge import Bridge
from autobot_mcp_bridge.proxy.egress import EgressFamilies
from autobot_mcp_bridge.proxy.host_metrics import DiskFamilies, HostFamilies, TlsFamilies
from autobot_mcp_bridge.proxy.served import Served, state_of
from autobot_mcp_bridge.proxy.unit_metrics import UnitFamilies
from autobot_mcp_bridge.supervision.breaker import BreakerState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# So many servers are looked at before clients get their turn: a state may cost a look at the disk.
AT_ONCE = 20


class Families(Collector):
    """One family per metric, a sample per server."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._calls = CounterMetricFamily(
            "mcp_bridge_calls",
            "Calls by outcome: ok, or the error's word",
            labels=["server", "outcome"],
        )
        self._starts = CounterMetricFamily(
            "mcp_bridge_starts", "Processes started", labels=["server"]
        )
        self._crashes = CounterMetricFamily(
            "mcp_bridge_crashes", "Ends that nobody asked for", labels=["server", "cause"]
        )
        self._dropped = CounterMetricFamily(
            "mcp_bridge_dropped_lines",
            "Lines and messages of the server that reached nobody",
            labels=["server", "reason"],
        )
        self._state = GaugeMetricFamily(
            "mcp_bridge_server_state",
            "1 for the state the server is in",
            labels=["server", "state"],
        )
        self._sessions = GaugeMetricFamily(
            "mcp_bridge_sessions", "Live sessions", labels=["server"]
        )
        self._open_calls = GaugeMetricFamily(
            "mcp_bridge_open_calls", "Calls in flight", labels=["server"]
        )
        self._breaker = GaugeMetricFamily(
            "mcp_bridge_breaker_open",
            "1 while crashes keep the server from starting",
            labels=["server"],
        )
        self._tools = GaugeMetricFamily(
            "mcp_bridge_tools_unaccepted",
            "Tools that are new or changed since they were accepted, by tools.drift",
            labels=["server", "drift"],
        )
        self._openings = CounterMetricFamily(
            "mcp_bridge_breaker_openings",
            "How often crashes have kept the server from starting",
            labels=["server"],
        )
        self._uptime = GaugeMetricFamily(
            "mcp_bridge_uptime_seconds", "How long its process has run", labels=["server"]
        )
        self._between = HistogramMetricFamily(
            "mcp_bridge_crash_interval_seconds",
            "Time from one crash to the next",
            labels=["server"],
        )
        self._config = GaugeMetricFamily(
            "mcp_bridge_config_ok",
            "0 while the configuration on the disk has a mistake",
            value=float(bridge.healthy),
        )
        self._definition = GaugeMetricFamily(
            "mcp_bridge_definition_ok",
            "0 while what the files say of the server cannot be put to use on this host",
            labels=["server"],
        )
        self._issuer = GaugeMetricFamily(
            "mcp_bridge_issuer_ok",
            "0 if the issuer of access tokens gave no keys when it was last asked",
            value=float(bridge.access is None or bridge.access.issuer_well),
        )
        self._refusals = CounterMetricFamily(
            "mcp_bridge_refusals",
            "Requests refused before any server was asked, by reason",
            labels=["reason"],
        )
        for reason, number in bridge.refusals.counts.items():
            self._refusals.add_metric([reason.value], number)

    def add(self, served: Served) -> None:
        name, counts = served.spec.instance, served.counts
        for outcome, number in sorted(counts.calls.items()):
            self._calls.add_metric([name, outcome], number)
        self._starts.add_metric([name], counts.starts)
        for cause, number in sorted(counts.crashes.items()):
            self._crashes.add_metric([name, cause], number)
        for reason, number in sorted(counts.dropped.items()):
            self._dropped.add_metric([name, reason], number)
        stderr = self._bridge.runtime.dropped_lines.get(name, 0)
        self._dropped.add_metric([name, "stderr_budget"], stderr)
        now, _ = state_of(served)
        for each in State:
            self._state.add_metric([name, each.value], float(each is now))
        self._definition.add_metric([name], float(served.refused is None))
        self._sessions.add_metric([name], len(served.conversations.sessions))
        self._open_calls.add_metric([name], served.conversations.open_calls)
        closed = served.instance.breaker.state is BreakerState.CLOSED
        self._breaker.add_metric([name], float(not closed))
        self._openings.add_metric([name], served.instance.breaker.openings)
        if served.drift.watches:
            self._tools.add_metric([name, served.drift.mode], served.drift.unaccepted)
        if served.instance.channel is not None:
            self._uptime.add_metric([name], max(0.0, time.monotonic() - served.instance.began))
        between = counts.between_crashes
        self._between.add_metric([name], between.buckets(), sum_value=between.total)

    def collect(self) -> Iterator[Metric]:
        yield from (self._calls, self._starts, self._crashes, self._dropped, self._state)
        yield from (self._sessions, self._open_calls, self._breaker, self._openings)
        yield from (self._uptime, self._between, self._config, self._definition)
        yield from (self._issuer, self._refusals, self._tools)


async def exposition(bridge: Bridge) -> bytes:
    """All metrics in the text format; with many servers in turns with other work."""
    everyone = list(bridge.routes.values())
    running = [one.spec.instance for one in everyone if one.instance.process is not None]
    usage = await bridge.runtime.usage(running)
    families, units = Families(bridge), UnitFamilies(bridge.runtime.unread)
    for number, served in enumerate(everyone, 1):
        families.add(served)
        if (used := usage.get(served.spec.instance)) is not None:
            units.add(served.spec, used)
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
    registry = CollectorRegistry(auto_describe=False)
    instances = [one.spec.instance for one in everyone]
    measured = await asyncio.to_thread(disk.read, bridge.places.disk)
    egress = await asyncio.to_thread(counts.load, bridge.places.egress_dir / counts.FILE)
    for collector in (
        families,
        units,
        HostFamilies(bridge.host_facts),
        TlsFamilies(bridge.tls),
        AuditFamilies(bridge.trail),
        DiskFamilies(measured, instances),
        EgressFamilies({name: egress[name] for name in instances if name in egress}),
    ):
        registry.register(collector)
    return await asyncio.to_thread(generate_latest, registry)
