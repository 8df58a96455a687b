"""A storm on units: the installed product behind the seam that support/storm.py has."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from lab import labs
from lab.places import Lab
from support.bridge import FAULTS, around, new_token
from support.client import Modern, Session
from support.containers import properties, reaches
from support.product import PROXY, Product, digest_of, echo, installed_product, instance_of
from support.storm import Size, Stormed, make_servers
from support.waiting import WITHIN

APPLIED_WITHIN = 8 * WITHIN
STOPPED_WITHIN = 60.0  # seconds for the proxy's stop, which ends all servers
_DROP_IN = f"/run/systemd/system/{PROXY}.d/90-storm.conf"
_WARNINGS = "[Service]\nEnvironment=PYTHONWARNINGS=always::ResourceWarning\n"


class Units:
    """What is served in the container, each server with one token."""

    def __init__(self, product: Product, size: Size) -> None:
        self._product = product
        self._tokens = {}
        self.servers = make_servers(size, echo)
        for server in self.servers:
            token = self._tokens[instance_of(server)] = new_token()
            server["tokens_sha256"] = [digest_of(token)]

    @property
    def pid(self) -> int:
        return self._product.pid

    def session(self, instance: str, /, *, ids: Any = None) -> Session:
        return self._product.session(instance, self._tokens[instance], ids=ids)

    def modern(self, instance: str, /, *, ids: Any = None) -> Modern:
        return self._product.modern(instance, self._tokens[instance], ids=ids)

    async def status(self) -> dict[str, Any]:
        return await self._product.status()

    async def kill_server(self, pid: int) -> None:
        await asyncio.to_thread(self._product.container.check, "kill", "-KILL", str(pid))

    def assert_clean(self) -> None:
        """After the proxy's stop: it ended well, no server runs, no fault and no token is told.

        Raises:
            AssertionError: it is not so.
        """
        container = self._product.container
        log = "\n".join(self._product.logs(f"_SYSTEMD_UNIT={PROXY}"))
        ended = properties(container, PROXY, "Result", "ExecMainStatus", "NRestarts")
        assert ended == {"Result": "success", "ExecMainStatus": "0", "NRestarts": "0"}, log[-4000:]
        words = ("--plain", "--no-legend", "--state=active", "autobot-mcp-bridge@*.service")
        assert container.check("systemctl", "list-units", *words) == ""
        for fault in FAULTS:
            assert fault not in log, around(fault, log)
        for token in self._tokens.values():
            assert token not in log, "a token stands in the log"


@asynccontextmanager
async def on_units(product: Product, size: Size) -> AsyncIterator[Stormed]:
    """The product with a storm's servers and a proxy that has just started; then with none."""
    container = product.container
    container.write(_DROP_IN, _WARNINGS)
    container.check("systemctl", "daemon-reload")
    units = Units(product, size)
    try:
        product.write_servers(*units.servers)
        await product.applied(*map(instance_of, units.servers), within=APPLIED_WITHIN)
        await asyncio.to_thread(container.check, "systemctl", "restart", PROXY)
        yield units
        await asyncio.to_thread(container.check, "systemctl", "stop", PROXY, timeout=STOPPED_WITHIN)
        units.assert_clean()
    finally:
        container.check("rm", "-f", _DROP_IN)
        container.check("systemctl", "daemon-reload")
        container.check("systemctl", "start", PROXY)
        product.write_servers()
        await product.applied(within=APPLIED_WITHIN)
    await reaches(container, PROXY, ActiveState="active")


@contextmanager
def _own_product(suite: str) -> Iterator[Product]:
    lab = Lab.of_process()
    labs.sweep(lab.cache)
    product = installed_product(lab, suite, "chaos-" + suite)
    try:
        yield product
    finally:
        product.container.down()


@asynccontextmanager
async def on_units_of(suite: str, size: Size) -> AsyncIterator[Stormed]:
    """The same in a container of its own, which is gone afterwards."""
    with _own_product(suite) as product:
        async with on_units(product, size) as units:
            yield units
