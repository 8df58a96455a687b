"""Watches the units of the known instances over the system bus, and acts on them.

The one place that knows what systemd does with them. Events come in order and exactly once,
however often systemd repeats a signal, and over reloads, re-executions and restarts of the bus.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from autobot_mcp_bridge.supervision.bus import SYSTEM_BUS, BusError
from autobot_mcp_bridge.supervision.manager import JobNew, JobRemoved, Manager
from autobot_mcp_bridge.supervision.unit_events import Event
from autobot_mcp_bridge.supervision.unit_paths import PATTERNS, Kind, unit_of
from autobot_mcp_bridge.supervision.unit_state import UNIT, UnitState
from autobot_mcp_bridge.supervision.watched_unit import WatchedUnit

JOB_WITHIN = 1.0  # seconds for the two answers about a job
READ_AGAIN = 1.0  # seconds after a read that failed although the bus is there
AT_ONCE = 16  # reads under way; each may be 60 KiB of answer
# All that counts of a socket; a service is read whole.
_OF_SOCKET = ("ActiveState", "SubState", "Result", "Job", "LoadState", "UnitFileState")

log = logging.getLogger(__name__)


class Watcher:
    """One for a proxy's whole life.

    Args:
        tell: gets each event in its turn of the event loop; may neither wait nor raise.
        path: the bus's socket.
        library: see bus_library.LIBRARIES.

    Raises:
        BusUnavailableError: no library for D-Bus is installed.
    """

    def __init__(
        self,
        tell: Callable[[Event], None],
        *,
        path: str = SYSTEM_BUS,
        library: str | None = None,
    ) -> None:
        self._tell = tell
        self._manager = Manager(self, path=path, library=library)
        self._units: dict[str, WatchedUnit] = {}
        self._stale = asyncio.Event()
        self._all_stale = False
        self._settled = asyncio.Event()

    @property
    def is_connected(self) -> bool:
        """Whether the states are those of now; without a bus they are the last known ones."""
        return self._manager.is_connected

    async def run(self) -> None:
        """Keep watching; returns only by cancelling, and waits for a bus that is not there."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._manager.run())
            tasks.create_task(self._keep_reading())

    def watch(self, instances: Iterable[str]) -> None:
        """Watch exactly these instances, and forget all others.

        What is known of an instance begins with its first read: an invocation that was over by
        then is never told of. `settled` waits for that.
        """
        wanted = {unit_of(name, kind): (name, kind) for name in instances for kind in Kind}
        for unit in self._units.keys() - wanted.keys():
            del self._units[unit]
        for unit, (name, kind) in wanted.items():
            if unit not in self._units:
                self._units[unit] = WatchedUnit(name, kind, self._tell, self._ask)
                self._settled.clear()
        self._stale.set()

    async def settled(self) -> None:
        """Wait until every watched unit is known; not bounded, there may be no bus for long."""
        await self._settled.wait()

    def state(self, instance: str, kind: Kind = Kind.SERVICE) -> UnitState | None:
        """Return what is known; None for an instance that is not watched or not read yet."""
        unit = self._units.get(unit_of(instance, kind))
        return unit.state if unit is not None else None

    def is_asked_to_end(self, instance: str, invocation: str) -> bool:
        """Whether a job is known that ends this invocation, an operator's or ours."""
        unit = self._units.get(unit_of(instance))
        return unit is not None and unit.is_asked_to_end(invocation)

    async def job_of(self, unit: str) -> str:
        """What the unit's job is to do, such as `stop` or `restart`; "" without one, or a bus."""
        try:
            async with asyncio.timeout(JOB_WITHIN):
                found = await self._manager.read_some(unit, "Job")
                number = int(found["Job"][0])
                if not number:
                    return ""
                typed = asyncio.get_running_loop().create_future()
                self._manager.job_type(number, typed.set_result, typed.set_exception)
                return str(await typed)
        except (TimeoutError, BusError):
            return ""

    async def control_group(self, instance: str) -> str:
        """The cgroup of the instance's service, below the root of the hierarchy; "" without one.

        Raises:
            BusError: systemd cannot be asked.
        """
        found = await self._manager.read_some(unit_of(instance), "ControlGroup")
        return str(found["ControlGroup"])

    async def start(self, instance: str, kind: Kind = Kind.SERVICE) -> None:
        """Queue a start; the events tell what comes of it.

        Raises:
            BusError: as Manager.start_unit.
        """
        with self._own_call(instance, kind) as then:
            await self._manager.start_unit(unit_of(instance, kind), then)

    async def stop(self, instance: str, invocation: str = "", kind: Kind = Kind.SERVICE) -> None:
        """Queue a stop, which is ours and no operator's; with an invocation, only of that one.

        Raises:
            BusError: as Manager.stop_unit.
        """
        with self._own_call(instance, kind) as then:
            await self._manager.stop_unit(unit_of(instance, kind), invocation, then)

    async def reset_failed(self, instance: str, kind: Kind = Kind.SERVICE) -> None:
        """Take `failed` away.

        Raises:
            BusError: as Manager.reset_failed.
        """
        await self._manager.reset_failed(unit_of(instance, kind))

    def claim(self, instance: str, job: int, kind: Kind = Kind.SERVICE) -> None:
        """Say of a job that is queued, by another part of ours, that it is no operator's."""
        unit = self._units.get(unit_of(instance, kind))
        if unit is not None:
            unit.own_job(job)

    @contextmanager
    def _own_call(self, instance: str, kind: Kind) -> Iterator[Callable[[int], None]]:
        own = self._units.get(unit_of(instance, kind))
        # A service requires its socket: a stop of the socket queues one for the service as well.
        also = self._units.get(unit_of(instance)) if kind is Kind.SOCKET else None
        for unit in filter(None, (own, also)):
            unit.own_call()
        try:
            yield own.own_job if own is not None else _nothing
        finally:
            for unit in filter(None, (own, also)):
                unit.own_call_done()

    # Reading.

    async def _keep_reading(self) -> None:
        while True:
            await self._stale.wait()
            self._stale.clear()
            everything, self._all_stale = self._all_stale, False
            if not self._manager.is_connected:
                continue  # connected() comes
            try:
                await self._read(everything)
            except BusError as error:
                # Without a bus connected() comes; with one, systemd may be about to leave it.
                if self._manager.is_connected:
                    log.info("the units' states cannot be read: %s", error)
                    await asyncio.sleep(READ_AGAIN)
                self._all_stale = self._all_stale or everything
                self._stale.set()

    async def _read(self, everything: bool) -> None:
        asked = [
            (unit, unit.version)
            for unit in self._units.values()
            if everything or unit.doubtful or unit.state is None
        ]
        loaded = await self._manager.list_units(*PATTERNS)
        for start in range(0, len(asked), AT_ONCE):
            some = asked[start : start + AT_ONCE]
            await asyncio.gather(*(self._read_unit(*each, loaded) for each in some))
        if all(unit.state is not None for unit in self._units.values()):
            self._settled.set()

    async def _read_unit(self, unit: WatchedUnit, version: int, loaded: set[str]) -> None:
        taken = False

        def take(found: Mapping[str, Any]) -> None:
            nonlocal taken
            taken = unit.version == version  # nothing has happened to it since the list
            if taken:
                unit.read(found)

        # Not loaded: at rest, without a result. systemd loads it for this, so one call is best.
        if unit.name not in loaded:
            await self._manager.read(unit.name, take, UNIT)
        elif unit.kind is Kind.SOCKET:
            take(await self._manager.read_some(unit.name, *_OF_SOCKET))
        if not taken:
            await self._manager.read(unit.name, unit.read)

    # What the manager tells.

    def connected(self) -> None:
        self._all_stale = True
        self._stale.set()

    def disconnected(self) -> None:
        for unit in self._units.values():
            unit.lost()

    def changed(self, unit: str, properties: Mapping[str, Any], *, whole: bool) -> None:
        if (watched := self._units.get(unit)) is not None:
            watched.signalled(properties, whole=whole)

    def job_new(self, job: JobNew) -> None:
        if (watched := self._units.get(job.unit)) is not None:
            watched.job_new(job.id)

    def job_removed(self, job: JobRemoved) -> None:
        if (watched := self._units.get(job.unit)) is not None:
            watched.job_removed(job.id, job.result)

    def unloaded(self, unit: str) -> None:
        if (watched := self._units.get(unit)) is not None:
            watched.unloaded()
            if watched.doubtful:
                self._stale.set()

    def reloaded(self) -> None:
        self._all_stale = True
        self._stale.set()

    def _ask(self, unit: WatchedUnit, job: int) -> None:
        self._manager.job_type(
            job,
            lambda job_type: unit.job_typed(job, job_type),
            lambda _error: unit.job_typed(job, ""),
        )


def _nothing(_job: int) -> None: ...
