"""Many servers at once: called steadily, measured, while a neighbour of theirs is greedy.

The time is cut into windows: nobody is greedy, one burns its CPU quota, nobody, one fills its
memory, and again; so that what else the machine does meets all of them alike.
"""

import asyncio
import itertools
import os
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import proc, unit_memory
from support.client import Session, text_of
from support.product import Product

PAUSE = 1.0  # seconds of one server between an answer and the next call
QUIET_PAUSE = 0.01  # the same of the one that is measured
WINDOW = 5.0  # seconds
CALL_WITHIN = 30.0
STARTS_AT_ONCE = 3
FAULTS = (AssertionError, OSError, EOFError, TimeoutError, KeyError)


@dataclass(frozen=True, slots=True)
class Member:
    """One server, and the call that it gets.

    Attributes:
        kind: what it is counted with.
    """

    kind: str
    definition: dict[str, Any]
    tool: str = ""
    arguments: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return str(self.definition["name"])


@dataclass(frozen=True, slots=True)
class Greedy:
    """A window's name, whom it makes greedy, and how: `seconds` is added to the arguments."""

    window: str
    member: Member
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Use:
    """What a server's processes, or the proxy, hold."""

    memory: int  # bytes
    descriptors: int


class Fleet:
    """Servers of one product, all in force.

    Attributes:
        calls: how many were answered, by kind.
        failed: what went wrong, one text for each failed call.
        latencies: seconds of each call of the quiet one, by window.
        told: what each greedy one has answered, by window.
        lasted: seconds that these windows have lasted, by window.
    """

    def __init__(self, product: Product, members: Sequence[Member], token: str) -> None:
        self.product = product
        self.members = members
        self.clients = {m.name: product.session(m.name, token) for m in members}
        self.calls: Counter[str] = Counter()
        self.failed: list[str] = []
        self.latencies: defaultdict[str, list[float]] = defaultdict(list)
        self.told: defaultdict[str, list[float]] = defaultdict(list)
        self.lasted: defaultdict[str, float] = defaultdict(float)
        self._window = ""
        self._off = asyncio.Event()
        self._folders: dict[str, Path] = {}

    async def start(self) -> None:
        """Start all of them, a few at a time, and find their cgroups."""
        gate = asyncio.Semaphore(STARTS_AT_ONCE)

        async def one(client: Session) -> None:
            async with gate:
                await client.initialize(within=3 * CALL_WITHIN)
                await client.drop()  # until the load begins the proxy would close it

        await asyncio.gather(*map(one, self.clients.values()))
        for member in self.members:
            unit = f"autobot-mcp-bridge@{member.name}.service"
            folder = unit_memory.folder
            self._folders[member.name] = await asyncio.to_thread(
                folder, self.product.container, unit
            )

    async def load(self, seconds: float, quiet: Member, greedy: Sequence[Greedy] = ()) -> None:
        """Call all of them for so long, with the windows of who is greedy among them."""
        self._off.clear()
        spared = {quiet.name, *(one.member.name for one in greedy)}
        busy = [member for member in self.members if member.name not in spared and member.tool]
        tasks = [
            asyncio.create_task(self._call(member, number)) for number, member in enumerate(busy)
        ]
        tasks.append(asyncio.create_task(self._measure(quiet)))
        end = time.monotonic() + seconds
        turns = itertools.cycle([turn for one in greedy for turn in (None, one)] or [None])
        with _as_on_another_machine():
            while time.monotonic() < end:
                await self._pass(next(turns))
            self._off.set()
            await asyncio.gather(*tasks)

    async def _pass(self, greedy: Greedy | None) -> None:
        self._window = greedy.window if greedy else "alone"
        if greedy is None:
            await self._pause(WINDOW)
            return
        client = self.clients[greedy.member.name]
        arguments = {**greedy.arguments, "seconds": WINDOW}
        began = time.monotonic()
        try:
            told = text_of(await client.call(greedy.tool, arguments, within=CALL_WITHIN))
        except FAULTS as fault:
            self.failed.append(f"{greedy.member.name}: {fault!r}"[:300])
        else:
            self.told[greedy.window].append(float(told))
            self.lasted[greedy.window] += time.monotonic() - began

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._off.wait()

    async def _call(self, member: Member, number: int) -> None:
        await self._pause(PAUSE * number / len(self.members))  # not all at the same moment
        while not self._off.is_set():
            await self._once(member)
            await self._pause(PAUSE)

    async def _measure(self, member: Member) -> None:
        while not self._off.is_set():
            window, began = self._window, time.monotonic()
            await self._once(member)
            self.latencies[window].append(time.monotonic() - began)
            await self._pause(QUIET_PAUSE)

    async def _once(self, member: Member) -> None:
        client = self.clients[member.name]
        try:
            answer = await client.call(member.tool, dict(member.arguments), within=CALL_WITHIN)
            assert not answer["result"].get("isError"), answer
        except FAULTS as fault:
            self.failed.append(f"{member.name}: {fault!r}"[:300])
        else:
            self.calls[member.kind] += 1

    def use(self) -> dict[str, Use]:
        """What each server holds now."""
        return {
            name: Use(
                unit_memory.held(folder),
                sum(map(proc.descriptors, unit_memory.processes(folder))),
            )
            for name, folder in self._folders.items()
        }

    def use_of_proxy(self) -> Use:
        pid = self.product.pid
        return Use(proc.rss(pid), proc.descriptors(pid))

    def peak(self, member: Member) -> int:
        """The most bytes that it has had, page cache included."""
        file = self._folders[member.name] / "memory.max_usage_in_bytes"
        return int(file.read_text(encoding="utf-8"))

    async def drop(self) -> None:
        for client in self.clients.values():
            await client.drop()


@contextmanager
def _as_on_another_machine() -> Iterator[None]:
    """Have the clients of this thread wait for no server's processor, as they do elsewhere (sched(7))."""
    first = os.sched_param(os.sched_get_priority_min(os.SCHED_FIFO))
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, first)
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def p99(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98]
