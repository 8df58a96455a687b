"""A server from a registry at work: installed, in its sandbox, with what a start and a run cost."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from support import unit_memory
from support.client import Session
from support.containers import properties, reaches
from support.product import Product
from support.waiting import WITHIN

STARTS = 3
# A start on a busy machine, package installed; the default of timeouts.start.
STARTED_WITHIN = 30.0
PROMISED = {"ActiveState": "active", "DynamicUser": "yes", "NoNewPrivileges": "yes"}
# As proc_pid_status(5) has them: a filter of system calls, and no capability to be had.
OF_PROCESS = {"NoNewPrivs": "1", "Seccomp": "2", "CapBnd": "0" * 16, "CapEff": "0" * 16}


class AtWork:
    """One server of a product, which serves nothing else.

    Attributes:
        client: a session of it.
    """

    def __init__(self, product: Product, definition: dict[str, Any], client: Session) -> None:
        self.product = product
        self.definition = definition
        self.client = client
        self.unit = f"autobot-mcp-bridge@{definition['name']}.service"

    async def is_confined(self, *, compiles: bool = False, network: bool = False) -> None:
        """Hold its unit and its process against what its profile and network mode promise.

        Args:
            compiles: it may write code at run time.
            network: it is in the network of the host, not in one of its own.

        Raises:
            AssertionError: it is not running, or in another sandbox.
        """
        promised = {
            **PROMISED,
            "MemoryDenyWriteExecute": "no" if compiles else "yes",
            "PrivateNetwork": "no" if network else "yes",
        }
        container = self.product.container
        shown = await asyncio.to_thread(properties, container, self.unit, *promised, "MainPID")
        pid = shown.pop("MainPID")
        assert shown == promised
        status = await asyncio.to_thread(container.check, "cat", f"/proc/{pid}/status")
        told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert {name: told[name] for name in OF_PROCESS} == OF_PROCESS

    async def ended(self) -> None:
        """Have it end for want of calls, as it does at its idle time, and wait for that."""
        self.product.write_servers({**self.definition, "timeouts": {"idle": "1s"}})
        await reaches(self.product.container, self.unit, ActiveState="inactive", within=6 * WITHIN)

    async def record(
        self, record: Callable[[str, object], None], tool: str, arguments: dict[str, Any]
    ) -> None:
        """Record what it holds in memory now, and how long a call takes that has to start it."""
        folder = await asyncio.to_thread(unit_memory.folder, self.product.container, self.unit)
        name = self.definition["name"]
        record(f"{name}_memory_mib", round(unit_memory.held(folder) / (1 << 20)))
        found = []
        for _ in range(STARTS):
            await self.ended()
            began = time.monotonic()
            answer = await self.client.call(tool, arguments, within=STARTED_WITHIN)
            found.append(time.monotonic() - began)
            assert not answer["result"].get("isError"), answer
        record(f"{name}_cold_start_ms", round(statistics.median(found) * 1000))


@asynccontextmanager
async def at_work(product: Product, definition: dict[str, Any]) -> AsyncIterator[AtWork]:
    """The server, and no other in force."""
    product.write_servers(definition)
    await product.applied(definition["name"])
    async with product.session(definition["name"]) as client:
        yield AtWork(product, definition, client)
