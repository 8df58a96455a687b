"""What there is to tell of this host: its certificate, its sandbox, its disk."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from autobot_mcp_bridge.config.disk import Disk
from autobot_mcp_bridge.model.promises import Facts
from autobot_mcp_bridge.proxy.tls import Tls


class DiskFamilies(Collector):
    """What was measured last, of servers that are served; nothing before the first time."""

    def __init__(self, disk: Disk, instances: Iterable[str]) -> None:
        self._bytes = GaugeMetricFamily(
            "mcp_bridge_disk_bytes",
            "What a server's state or cache took of the disk when it was measured last",
            labels=["server", "kind"],
        )
        self._packages = GaugeMetricFamily(
            "mcp_bridge_packages_bytes", "What installed packages took of the disk then"
        )
        self._at = GaugeMetricFamily(
            "mcp_bridge_disk_measured_timestamp_seconds", "When the disk was measured last"
        )
        if disk.at:
            self._packages.add_metric([], disk.packages)
            self._at.add_metric([], disk.at)
        for instance in instances:
            for kind, size in disk.servers.get(instance, {}).items():
                self._bytes.add_metric([instance, kind], size)

    def collect(self) -> Iterator[Metric]:
        yield from (self._bytes, self._packages, self._at)


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


class TlsFamilies(Collector):
    """The certificate that clients are shown; nothing without TLS."""

    def __init__(self, tls: Tls | None) -> None:
        self._expires = GaugeMetricFamily(
            "mcp_bridge_tls_expires_timestamp_seconds",
            "When the certificate in force expires; 0 while there is none",
        )
        self._ok = GaugeMetricFamily(
            "mcp_bridge_tls_ok", "0 while the newest certificate or its key cannot be used"
        )
        if tls is not None:
            self._expires.add_metric([], tls.current.expires if tls.current is not None else 0)
            self._ok.add_metric([], float(not tls.trouble))

    def collect(self) -> Iterator[Metric]:
        yield from (self._expires, self._ok)
