"""The proxy of an installed product as its unit: restarted, killed, kept away."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from support import proc
from support.bridge import FAULTS, around
from support.client import Session
from support.containers import properties, reaches
from support.product import PROXY, Product, instance_of, url_of
from support.waiting import eventually
from support.wire import Connection

STARTED_WITHIN = 20.0
HOLD = "/run/hold-the-proxy"
_DROP_IN = f"""[Service]
Environment=PYTHONWARNINGS=always::ResourceWarning
# So that a test can look at what there is while no proxy runs.
ExecStartPre=/bin/sh -c 'while test -e {HOLD}; do sleep 0.05; done'
"""
_FORGET = """
import sys
from pathlib import Path
from autobot_mcp_bridge.config import accepted
path = Path("/var/lib/mcp-bridge/accepted.json")
accepted.write(path, accepted.read(path).without(sys.argv[1:], accepted.Accepted()))
"""


class ProxyUnit:
    """The unit `mcp-bridge-proxy.service` in the product's container, which is the test's own."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.container = product.container
        self.container.write(f"/etc/systemd/system/{PROXY}.d/90-test.conf", _DROP_IN)
        self.container.check("systemctl", "daemon-reload")
        self.container.check("systemctl", "restart", PROXY)

    async def run(self, *words: str) -> str:
        """Run a command in the container while the loop goes on."""
        return await asyncio.to_thread(self.container.check, *words)

    async def restart(self) -> None:
        await self.run("systemctl", "restart", PROXY)

    async def kill(self) -> None:
        """SIGKILL, and wait until the next one serves."""
        old = await asyncio.to_thread(lambda: self.main_pid)
        await self._signal("KILL")

        async def another() -> bool:
            return await asyncio.to_thread(lambda: self.main_pid) not in (0, old)

        await eventually(another, within=STARTED_WITHIN)
        await reaches(self.container, PROXY, ActiveState="active", within=STARTED_WITHIN)

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """SIGKILL, and let the next one begin only when the block ends."""
        await self.run("touch", HOLD)
        try:
            await self._signal("KILL")
            await reaches(self.container, PROXY, SubState="start-pre", within=STARTED_WITHIN)
            yield
        finally:
            await self.run("rm", "-f", HOLD)
        await reaches(self.container, PROXY, ActiveState="active", within=STARTED_WITHIN)

    async def _signal(self, name: str) -> None:
        await self.run("systemctl", "kill", f"--signal={name}", "--kill-whom=main", PROXY)

    @property
    def main_pid(self) -> int:
        """As the container numbers it; 0 while there is none."""
        return int(properties(self.container, PROXY, "MainPID")["MainPID"])

    @property
    def stored(self) -> int:
        """Descriptors that systemd holds for it."""
        return int(
            properties(self.container, PROXY, "NFileDescriptorStore")["NFileDescriptorStore"]
        )

    def descriptors(self) -> int:
        return proc.descriptors(self.product.pid)

    def invocations(self, names: Iterable[str]) -> dict[str, str]:
        """The invocation of each server's unit that is active."""
        found = {}
        for name in names:
            shown = properties(self.container, unit_of(name), "InvocationID", "ActiveState")
            if shown["ActiveState"] == "active":
                found[name] = shown["InvocationID"]
        return found

    def log(self) -> str:
        return "\n".join(self.product.logs(f"_SYSTEMD_UNIT={PROXY}"))

    def session(self, name: str, token: str, **options: Any) -> "KeptSession":
        made = KeptSession(url_of(name), token, **options)
        made.dial = self.product.dial
        return made

    @asynccontextmanager
    async def serving(self, *servers: dict[str, Any]) -> AsyncIterator[None]:
        """Have the product serve these, and nothing at the end."""
        await self.product.serve(*servers)
        try:
            yield
        finally:
            await self.product.serve()

    async def apply(self, *servers: dict[str, Any]) -> None:
        """Replace servers.json and have it put to use, whether there is a proxy or not."""
        await asyncio.to_thread(self.product.write_servers, *servers)
        await self.run("mcp-bridge", "apply")
        assert set(self.product.accepted()) == set(map(instance_of, servers))

    async def forget(self, name: str) -> None:
        """Leave accepted.json as an apply does that ended before it removed the server's units."""
        await self.run("/usr/lib/mcp-bridge/venv/bin/python", "-c", _FORGET, name)


class KeptSession(Session):
    """A session that replaces a kept connection whose end it has seen; nothing is sent twice.

    Attributes:
        closed: how often that was so.
    """

    closed = 0

    async def take_connection(self) -> Connection:
        while self._idle and self._idle[-1].ended:
            self.closed += 1
            await self._idle.pop().close()
        return await super().take_connection()


def unit_of(name: str) -> str:
    return f"autobot-mcp-bridge@{name}.service"


def faultless(product: Product) -> Iterator[ProxyUnit]:
    """The proxy of a host that is made for this; at the end its log must name no fault of ours."""
    made = ProxyUnit(product)
    yield made
    log = made.log()
    made.container.down()
    for fault in FAULTS:
        assert fault not in log, around(fault, log)
