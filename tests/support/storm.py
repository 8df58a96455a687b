"""Chaos: many clients of both eras call many servers while servers are killed.

What is counted: every call sent ends as one right answer, one error or is lost; an error is
explained when its call was in flight on a server while that server was killed. What serves is behind
`Stormed`: the storm is the same on children of the proxy (`on_children`) and on units
(support/storm_units.py).
"""

import asyncio
import itertools
import os
import random
import signal
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from support import proc
from support.bridge import Bridge
from support.client import Client, Modern, Session, answer_to, text_of
from support.fakes import echo, instance_of
from support.waiting import eventually
from support.wire import Response

CALL_WITHIN = 30.0  # seconds; a call without an answer by then is lost
KILLS_PER_MINUTE = 4  # of one server: more than five crashes a minute open its breaker
SETTLE = 10.0  # seconds after the load for descriptors and memory
RSS_GROWTH = 1.10
WARM_UP = 20  # calls of each client before the baseline is taken, large answers at once among them
PROGRESS_EVERY = 5.0


@dataclass(frozen=True)
class Size:
    servers: int = 20
    tenants: int = 4
    clients: int = 200
    calls: int = 50_000
    kills: int = 40


class Stormed(Protocol):
    """What a storm needs of whatever serves."""

    @property
    def servers(self) -> list[dict[str, Any]]:
        """The entries of servers.json that are served."""

    @property
    def pid(self) -> int:
        """The proxy's process, in the number that it has here."""

    def session(self, instance: str, /, *, ids: Any = None) -> Session: ...

    def modern(self, instance: str, /, *, ids: Any = None) -> Modern: ...

    async def status(self) -> dict[str, Any]:
        """What the control socket says: `servers` are rows with instance, state and pid."""

    async def kill_server(self, pid: int) -> None:
        """SIGKILL to a server's main process, in the number that status gives."""


@dataclass
class Kill:
    """From just before the signal until the proxy no longer shows that process."""

    began: float
    ended: float = float("inf")


@dataclass
class Tally:
    sent: int = 0
    answered: int = 0
    errors: list[tuple[str, float, float, dict[str, Any]]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    kills: dict[str, list[Kill]] = field(default_factory=lambda: defaultdict(list))

    @property
    def ended(self) -> int:
        return self.answered + len(self.errors) + len(self.lost) + len(self.wrong)

    def unexplained(self) -> list[str]:
        """Errors that are not the named death of a server that was being killed meanwhile."""
        return [
            f"{instance}: {error}"
            for instance, began, ended, error in self.errors
            if error.get("data", {}).get("death", {}).get("signal") != "SIGKILL"
            or not any(k.began <= ended and began <= k.ended for k in self.kills[instance])
        ]


def alike_ids() -> Iterator[int | str]:
    """0, "0", 1, "1", …: the same for every client."""
    for number in itertools.count():
        yield number
        yield str(number)


def make_servers(size: Size, echo: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries of servers.json, each made by `echo`, which knows where the fake server lies."""
    servers = []
    for number in range(size.servers):
        place: dict[str, Any] = {"tenant": f"tenant{number % size.tenants}"}
        if number % 3:
            place["project"] = "web"
        # Equal names in different tenants and projects: only the whole name tells them apart.
        servers.append(echo(f"files{number // size.tenants}", **place, timeouts={"idle": 0}))
    return servers


class Storm:
    def __init__(self, host: Stormed, size: Size, seed: int, say: Callable[[str], None]) -> None:
        self.host = host
        self.size = size
        self.random = random.Random(seed)
        self.say = say
        self.tally = Tally()
        self.instances = [instance_of(server) for server in host.servers]
        self.clients: list[tuple[str, Client]] = []
        self._left = size.calls
        self._recent: dict[str, deque[float]] = defaultdict(deque)
        self._nonces = itertools.count()

    async def run(self) -> dict[str, Any]:
        async with AsyncExitStack() as stack:
            await self._connect(stack)
            warm_up = Tally()
            await asyncio.gather(*(self._work(*c, warm_up, WARM_UP) for c in self.clients))
            assert warm_up.answered == warm_up.sent, (warm_up.errors, warm_up.lost, warm_up.wrong)
            before = await self._measure()
            began = time.monotonic()
            await self._load(began)
            seconds = time.monotonic() - began
            for instance in self.instances:  # whatever was killed last is up again
                async with self.host.modern(instance) as client:
                    await client.text("pid")
            after = await self._measure(before)
        return self._summary(before, after, seconds)

    async def _connect(self, stack: AsyncExitStack) -> None:
        for number in range(self.size.clients):
            instance = self.instances[number % len(self.instances)]
            handshake = (number // len(self.instances)) % 2 == 0
            make: Callable[..., Session | Modern]
            make = self.host.session if handshake else self.host.modern
            client = await stack.enter_async_context(make(instance, ids=alike_ids()))
            self.clients.append((instance, client))

    async def _measure(self, baseline: tuple[int, int] | None = None) -> tuple[int, int]:
        """Descriptors and resident bytes without clients' connections, sessions still open."""
        for _, client in self.clients:
            await client.drop()
        pid = self.host.pid
        wanted = baseline or (0, 0)
        with suppress(AssertionError):
            await eventually(
                lambda: (
                    proc.descriptors(pid) <= wanted[0] and proc.rss(pid) <= RSS_GROWTH * wanted[1]
                ),
                within=SETTLE if baseline else 1.0,
            )
        return proc.descriptors(pid), proc.rss(pid)

    async def _load(self, began: float) -> None:
        killer = asyncio.create_task(self._kill())
        teller = asyncio.create_task(self._tell(began))
        try:
            await asyncio.gather(*(self._work(*c, self.tally) for c in self.clients))
            await killer
        finally:
            for task in (killer, teller):
                task.cancel()
            await asyncio.gather(killer, teller, return_exceptions=True)

    # Callers

    async def _work(
        self, instance: str, client: Client, tally: Tally, calls: int | None = None
    ) -> None:
        """Two callers in one session, until the calls are used up."""

        async def caller() -> None:
            turns = itertools.count() if calls is None else range(calls // 2)
            for _ in turns:
                if calls is None:
                    if self._left <= 0:
                        return
                    self._left -= 1
                await self._call(instance, client, tally)

        await asyncio.gather(caller(), caller())

    async def _call(self, instance: str, client: Client, tally: Tally) -> None:
        nonce = f"{instance} {next(self._nonces)}"
        chance = self.random.random()
        if chance < 0.1:
            message = client.call_of("progress", {"nonce": nonce, "steps": 2}, ..., "token")
        else:
            size = 65_536 if chance > 0.99 else self.random.randrange(200)
            delay = 0.2 if chance < 0.12 else 0.01 * (chance < 0.3)
            message = client.call_of("echo", {"text": nonce, "size": size, "delay": delay})
        tally.sent += 1
        began = time.monotonic()
        try:
            response = await client.send(message, within=CALL_WITHIN)
            answer = answer_to(response, message["id"])
        except (OSError, EOFError, TimeoutError, AssertionError, ValueError) as fault:
            tally.lost.append(f"{instance} {type(fault).__name__} {fault}"[:300])
            return
        if "error" in answer:
            tally.errors.append((instance, began, time.monotonic(), answer["error"]))
        elif mine(response, answer, nonce):
            tally.answered += 1
        else:
            tally.wrong.append(f"{nonce}: {response.body[:300]!r}")

    # Killing

    async def _kill(self) -> None:
        """Spread the kills evenly over the calls; at most KILLS_PER_MINUTE of one server."""
        for number in range(self.size.kills):
            # The last stretch stays free, so that each kill meets calls.
            due = (number + 1) / (self.size.kills + 2)
            await eventually(lambda due=due: self._progress() >= due, within=600)
            await eventually(self._kill_one, within=120, what="a server that may be killed")

    def _progress(self) -> float:
        return self.tally.ended / self.size.calls

    async def _kill_one(self) -> bool:
        """Kill a ready server; False when none may be killed right now."""
        now = time.monotonic()
        for times in self._recent.values():
            while times and now - times[0] > 60:
                times.popleft()
        free = [name for name in self.instances if len(self._recent[name]) < KILLS_PER_MINUTE]
        rows = await self._rows()
        ready = [name for name in free if rows[name]["state"] == "ready"]
        if not ready:
            return False
        victim = self.random.choice(ready)
        pid: int = rows[victim]["pid"]
        self._recent[victim].append(now)
        kill = Kill(time.monotonic())
        self.tally.kills[victim].append(kill)
        await self.host.kill_server(pid)

        async def seen() -> bool:
            return bool((await self._rows())[victim]["pid"] != pid)

        await eventually(seen)
        kill.ended = time.monotonic()
        return True

    async def _rows(self) -> dict[str, dict[str, Any]]:
        return {row["instance"]: row for row in (await self.host.status())["servers"]}

    # Telling

    async def _tell(self, began: float) -> None:
        while True:
            await asyncio.sleep(PROGRESS_EVERY)
            tally = self.tally
            kills = sum(map(len, tally.kills.values()))
            self.say(
                f"{time.monotonic() - began:5.0f} s  {tally.ended:6d}/{self.size.calls} calls  "
                f"{tally.answered} answered  {len(tally.errors)} errors  {kills} kills"
            )

    def _summary(
        self, before: tuple[int, int], after: tuple[int, int], seconds: float
    ) -> dict[str, Any]:
        tally = self.tally
        kills = sum(map(len, tally.kills.values()))
        unexplained = tally.unexplained()
        percent = 100 * tally.answered / max(1, tally.sent)
        checks = {
            "every call was sent": tally.sent == self.size.calls,
            "sent = answers + errors": tally.sent == tally.answered + len(tally.errors),
            "at least 95 % answered": percent >= 95,
            "every kill was made": kills == self.size.kills,
            "every error is explained by a kill": not unexplained,
            "every answer carries its nonce": not tally.wrong,
            "descriptors back at the baseline": after[0] <= before[0],
            "memory at most 10 % above the baseline": after[1] <= RSS_GROWTH * before[1],
        }
        return {
            "ok": all(checks.values()),
            "failed": [name for name, good in checks.items() if not good],
            "sent": tally.sent,
            "answered": tally.answered,
            "errors": len(tally.errors),
            "lost": len(tally.lost),
            "wrong": len(tally.wrong),
            "answered_percent": round(percent, 2),
            "kills": kills,
            "unexplained": unexplained[:5],
            "lost_examples": [text for text, _ in Counter(tally.lost).most_common(5)],
            "wrong_examples": tally.wrong[:5],
            "descriptors": before[0],
            "descriptors_after": after[0],
            "rss_mib": round(before[1] / 2**20, 1),
            "rss_mib_after": round(after[1] / 2**20, 1),
            "seconds": round(seconds, 1),
        }


def mine(response: Response, answer: dict[str, Any], nonce: str) -> bool:
    """Every message of the response belongs to the call with this nonce."""
    if text_of(answer).rstrip("x") != nonce:
        return False
    others = [message for message in response.messages if "method" in message]
    progress = [m["params"] for m in others if m["method"] == "notifications/progress"]
    return len(progress) == len(others) and all(
        step["message"] == nonce and step["progressToken"] == "token" for step in progress
    )


class _Children(Bridge):
    async def kill_server(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)


@asynccontextmanager
async def on_children(size: Size) -> AsyncIterator[Stormed]:
    """A proxy of its own, with servers that are its children."""
    async with _Children(make_servers(size, echo), host={"log": {"access": "errors"}}) as bridge:
        yield bridge


async def storm(host: Stormed, size: Size, seed: int, say: Callable[[str], None]) -> dict[str, Any]:
    """One storm, and what came of it."""
    return {"seed": seed, **await Storm(host, size, seed, say).run()}
