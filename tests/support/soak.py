"""A soak: many clients of both eras on one URL, which vanish half-way, while the server is killed.

Each call carries a nonce, and each listener has a resource of its own; what comes back must carry
the same. What ends in another way is matched with a kill: by the signal that the error names, or,
where a client was between two requests, by the time. Clients that vanish are counted apart, and
nothing is expected of them but that nothing of theirs stays.
"""

import asyncio
import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from support import proc
from support.bridge import Bridge
from support.client import META, Client, Modern, Session, answer_to, dumps, text_of
from support.soak_session import Talk
from support.soaked import ELICIT, UPDATED, WITHIN, CrossedError, Kill, Tally, filled_in, same
from support.storm import RSS_GROWTH, alike_ids, mine
from support.waiting import eventually
from support.wire import Connection, Response, Stream, encode

WARM_UP = 20.0  # seconds of the same load before the baseline is taken
SINGLE = 4  # callers who make one call at a time
KILL_PAUSE = (15.0, 20.0)  # seconds from one kill to the next: at most 4 a minute
FAULTS = (OSError, EOFError, TimeoutError, AssertionError, ValueError, KeyError)
OFFERS = {META + "clientCapabilities": {"elicitation": {}}}


@dataclass(frozen=True)
class Kind:
    """What is soaked.

    Attributes:
        asks: eras whose clients are asked something in the middle of a call.
        sessions: handshake sessions, each used by the same number of clients.
        isolated: each session has a process of its own, and so has each modern caller; a question
            of it names no call, so that only callers who make one call at a time are asked.
    """

    asks: frozenset[str]
    sessions: int
    isolated: bool = False


class Soak:
    """One server under load.

    Args:
        bridge: the proxy.
        instance: the server.
        kind: how it is served.
        seed: of every choice.
        clients: how many there are at once.
    """

    def __init__(
        self, bridge: Bridge, instance: str, kind: Kind, seed: int, clients: int = 100
    ) -> None:
        self.bridge = bridge
        self.instance = instance
        self.kind = kind
        self.random = random.Random(seed)
        self.clients = clients
        self.tally = Tally()
        self.single: list[str] = []  # tokens of callers who make one call at a time
        self._nonces = itertools.count()
        self._off = asyncio.Event()

    async def run(self, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
        if self.kind.isolated:
            self.single = [await self.bridge.more_token(self.instance) for _ in range(SINGLE)]
        await self._load(WARM_UP, kills=False)
        warm, self.tally = self.tally, Tally()
        before = await self._quiet()
        assert not warm.errors and not warm.wrong, (warm.errors[:3], warm.wrong[:3])
        say(f"warm: {dict(warm.done)}, baseline {before[0]} descriptors, {before[1] >> 20} MiB")
        await self._load(seconds, kills=True)
        after = await self._quiet(before)
        return self._summary(before, after)

    async def _load(self, seconds: float, *, kills: bool) -> None:
        self._off.clear()
        sessions = [Talk(self) for _ in range(self.kind.sessions)]
        jobs: list[Awaitable[None]] = []
        for number in range(self.clients - len(self.single)):
            match number % 10:
                case 0 | 1 | 2 | 3:
                    jobs.append(self._repeat(sessions[number % len(sessions)].act))
                case 4:
                    jobs.append(self._repeat(sessions[number % len(sessions)].come_back))
                case 5:
                    jobs.append(self._repeat(self._listen))
                case 6:
                    jobs.append(self._repeat(self._vanish))
                case _:
                    jobs.append(self._repeat(self._modern))
        jobs += [self._repeat(session.hear) for session in sessions]
        jobs += [self._repeat(partial(self._asker, token)) for token in self.single]
        if kills:
            jobs.append(self._kill())
        tasks = [asyncio.ensure_future(job) for job in jobs]
        await self.pause(seconds)
        self._off.set()
        await asyncio.gather(*tasks)
        for session in sessions:
            await session.close()

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until the load ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._off.wait()

    @property
    def off(self) -> bool:
        return self._off.is_set()

    async def _repeat(self, act: Callable[[], Awaitable[None]]) -> None:
        while not self.off:
            await act()
            await self.pause(self.random.uniform(0.0, 0.4))

    async def _quiet(self, baseline: tuple[int, int] | None = None) -> tuple[int, int]:
        """Descriptors and resident bytes when every client has gone and no process is left."""
        await eventually(lambda: not self.bridge.processes(), within=60, what="no process left")
        pid = self.bridge.pid
        if baseline is None:
            counts: list[int] = []

            def same() -> bool:
                counts.append(proc.descriptors(pid))
                return len(counts) > 40 and len(set(counts[-40:])) == 1

            await eventually(same, within=60)
        else:
            with suppress(AssertionError):
                await eventually(
                    lambda: (
                        proc.descriptors(pid) <= baseline[0]
                        and proc.rss(pid) <= RSS_GROWTH * baseline[1]
                    ),
                    within=20,
                )
        return proc.descriptors(pid), proc.rss(pid)

    # One deed of a client, and its account

    def nonce(self) -> str:
        return f"nonce {next(self._nonces)}"

    async def account(
        self, what: str, deed: Awaitable[dict[str, Any] | None], since: float | None = None
    ) -> dict[str, Any] | None:
        """Do it, and say what came of it; the error if it was one. `since`: what it relies on."""
        began = time.monotonic() if since is None else since
        error: Any
        try:
            answer = await deed
        except CrossedError as crossed:
            self.tally.wrong.append(f"{what}: {crossed}"[:600])
            return None
        except FAULTS as fault:
            error = f"{type(fault).__name__} {fault}"[:600]
        else:
            if answer is None or "error" not in answer:
                self.tally.done[what] += 1
                return None
            error = answer["error"]
        self.tally.errors.append((what, began, time.monotonic(), error))
        return error if isinstance(error, dict) else {}

    async def call(self, client: Client, *, asks: bool) -> dict[str, Any]:
        """A call with an answer at once, after progress, or after a question; its answer."""
        nonce = self.nonce()
        chance = self.random.random()
        if chance < 0.2 and asks:
            return await self._asked(client, nonce)
        if chance < 0.5:
            arguments = {"nonce": nonce, "steps": 3, "delay": 0.01}
            message = client.call_of("progress", arguments, ..., "token")
        else:
            size = 100_000 if chance > 0.97 else self.random.randrange(300)
            arguments = {"text": nonce, "size": size, "delay": self.random.choice((0, 0, 0.2))}
            message = client.call_of("echo", arguments)
        response = await client.send(message, within=WITHIN)
        answer = answer_to(response, message["id"])
        if "result" in answer and not mine(_without_updates(response), answer, nonce):
            raise CrossedError(f"{nonce}: {response.body[:300]!r}")
        return answer

    async def _asked(self, client: Client, nonce: str) -> dict[str, Any]:
        question = {"method": ELICIT, "params": {"message": nonce}}
        answer = filled_in(nonce)
        if isinstance(client, Session):
            stream = await client.open_stream(client.call_of("ask", question, ident := nonce))
            try:
                # Where several calls are open it may come on the session's own stream instead.
                asked = await _either(stream, ELICIT, ident)
                if "method" in asked:
                    same(nonce, asked["params"]["message"])
                    reply = {"jsonrpc": "2.0", "id": asked["id"], "result": answer}
                    await client.send(reply, within=WITHIN)
                    asked = await _either(stream, ident, ident)
            finally:
                await stream.close()
        else:
            message = client.call_of("ask", question)
            message["params"]["_meta"] = OFFERS
            asked = answer_to(await client.send(message, within=WITHIN), message["id"])
            if asked.get("result", {}).get("resultType") == "input_required":
                ((key, request),) = asked["result"]["inputRequests"].items()
                same(nonce, request["params"]["message"])
                retry = client.call_of("ask", question)
                state = asked["result"].get("requestState")
                more = {"inputResponses": {key: answer}, "requestState": state}
                retry["params"] |= {"_meta": OFFERS, **more}
                asked = answer_to(await client.send(retry, within=WITHIN), retry["id"])
        if "result" in asked and f'"{nonce}"' not in text_of(asked):
            raise CrossedError(f"{nonce}: {asked}")
        return asked

    # Clients of the modern era

    async def _modern(self) -> None:
        async with self.bridge.modern(self.instance, ids=alike_ids()) as client:
            for _ in range(5):
                asks = "modern" in self.kind.asks and not self.kind.isolated
                await self.account("modern call", self.call(client, asks=asks))

    async def _asker(self, token: str) -> None:
        async with Modern(self.bridge.url(self.instance), token) as client:
            await self.account("modern call, alone", self.call(client, asks=True))

    async def _listen(self) -> None:
        """Listen to a resource of its own for a while, which somebody else changes."""
        uri = f"own:///{self.nonce()}"
        async with self.bridge.modern(self.instance, ids=alike_ids()) as client:
            await self.account("listen", self._listened(client, uri))

    async def _listened(self, client: Modern, uri: str) -> dict[str, Any] | None:
        wish = {"notifications": {"resourceSubscriptions": [uri], "toolsListChanged": True}}
        message = client.request_of("subscriptions/listen", wish, uri)
        stream = await client.open_stream(message)
        try:
            if not stream.is_stream:
                refused: dict[str, Any] = await stream.json()
                return refused
            first = await stream.event(within=WITHIN)
            if "error" in first:
                return first
            for _ in range(3):
                changed = await client.call("touch", {"uri": uri}, within=WITHIN)
                if "error" in changed:
                    return changed
                # Of a server that was just killed the next one tells; what is lost between is lost.
                with suppress(TimeoutError):
                    told = await stream.event(within=0.5)
                    if told is None:
                        raise EOFError("the stream has ended")
                    self.check(told, uri, uri)
        finally:
            await stream.close()
        return None

    def check(self, told: dict[str, Any], uri: str, subscription: str | None) -> None:
        params = told.get("params", {})
        if told["method"] == UPDATED and params["uri"] != uri:
            raise CrossedError(f"of {params['uri']} on the stream of {uri}")
        if params.get("_meta", {}).get(META + "subscriptionId") != subscription:
            raise CrossedError(f"on the stream of {subscription}: {told}")
        self.tally.told[told["method"]] += 1

    # Clients that vanish

    async def _vanish(self) -> None:
        """Leave in the middle of a call, in one of the ways there are."""
        how = self.random.choice(("reset", "silent", "half-closed", "deaf"))
        client = self.bridge.modern(self.instance)
        client.deaf = True
        arguments = {"text": self.nonce(), "size": 400_000, "delay": 0.05}
        if self.random.random() < 0.5:
            message = client.call_of("echo", arguments)
        else:
            steps = {"nonce": self.nonce(), "steps": 20, "delay": 0.05}
            message = client.call_of("progress", steps, ..., "token")
        with suppress(*FAULTS):
            connection = await client.take_connection()
            try:
                await self._leave(connection, _bytes_of(client, message), how)
            finally:
                await connection.close()
            self.tally.left[how] += 1

    async def _leave(self, connection: Connection, request: bytes, how: str) -> None:
        connection.send(request[: len(request) // self.random.choice((1, 1, 2))])
        await connection.drain()
        await self.pause(self.random.uniform(0.0, 0.3))
        match how:
            case "reset":
                connection.reset()
            case "silent":
                connection.vanish()
            case "half-closed":
                connection.half_close()
        if how != "reset":
            await self.pause(self.random.uniform(0.5, 5.0))

    # Kills

    async def _kill(self) -> None:
        while True:
            await self.pause(self.random.uniform(*KILL_PAUSE))
            if self.off:
                return
            victims = self.bridge.processes()
            if not victims:
                continue
            crashes = await self._crashes()
            kill = Kill(self.random.choice(victims), time.monotonic())
            self.tally.kills.append(kill)
            os.kill(kill.pid, signal.SIGKILL)

            async def counted(crashes: float = crashes) -> bool:
                return await self._crashes() > crashes

            with suppress(AssertionError):  # it had just ended by itself
                await eventually(counted, within=10)
            kill.ended = time.monotonic()

    async def _crashes(self) -> float:
        return await self.bridge.metric("mcp_bridge_crashes_total", server=self.instance)

    # The account

    def _summary(self, before: tuple[int, int], after: tuple[int, int]) -> dict[str, Any]:
        tally = self.tally
        unexplained = tally.unexplained()
        checks = {
            "every answer belongs to its request": not tally.wrong,
            "every error is matched with a kill": not unexplained,
            "there were kills": bool(tally.kills),
            "every kind of client did something": len(tally.done) >= 4 and bool(tally.told),
            "descriptors back at the baseline": after[0] <= before[0],
            "memory at most 10 % above the baseline": after[1] <= RSS_GROWTH * before[1],
        }
        return {
            "ok": all(checks.values()),
            "failed": [name for name, good in checks.items() if not good],
            "done": dict(tally.done),
            "vanished": dict(tally.left),
            "told": dict(tally.told),
            "kills": len(tally.kills),
            "errors": dict(Counter(what for what, *_ in tally.errors)),
            "unexplained": unexplained[:5],
            "wrong": tally.wrong[:5],
            "descriptors": before[0],
            "descriptors_after": after[0],
            "rss_mib": round(before[1] / 2**20, 1),
            "rss_mib_after": round(after[1] / 2**20, 1),
        }


async def _either(stream: Stream, method: object, ident: object) -> dict[str, Any]:
    """The next question, or the answer."""
    if not stream.is_stream:
        plain: dict[str, Any] = await stream.json()
        return plain
    while (message := await stream.event(within=WITHIN)) is not None:
        if message.get("method") == method or message.get("id") == ident:
            found: dict[str, Any] = message
            return found
    raise EOFError("the stream ended before the answer")


def _bytes_of(client: Client, message: dict[str, Any]) -> bytes:
    return encode("POST", client.target, client.headers(message), dumps(client.prepare(message)))


def _without_updates(response: Response) -> Response:
    """A change of a session's resource may come on the stream of its only call (C5)."""
    if not response.is_stream:
        return response
    events = [m for m in response.messages if m.get("method") != UPDATED]
    body = b"".join(b"data: " + dumps(event) + b"\n\n" for event in events)
    return Response(response.status, response.reason, response.headers, body)
