"""The measurements. Each yields rows; whatever is compared is measured in turn within one run."""

import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import time

import targets
from loadgen import Client, Neighbour, Tally, WrongAnswerError, callers, load, stop, text_of

SMALL, LARGE = 100, 64 << 10  # bytes of a call's text
CELLS = [(count, size) for size in (SMALL, LARGE) for count in (1, 16, 64)]
BAR_CELLS = [(16, SMALL), (64, SMALL)]
# Calls of one visit. A round visits each target again and again, so that whatever else the machine
# does meets all of them alike; few calls, so that some visits meet nothing.
SLICE = {SMALL: 1000, LARGE: 250}

HOL_CALLERS = 4
HOL_SECONDS = 2
SLEEPERS, SLEEP = 16, 5  # calls asleep, seconds: all asleep from start to end of one measurement
SETTLE = 0.3  # seconds: so that the neighbour's first calls are at their server
BIG = 10 << 20  # bytes

KILL_DELAY, MID_CALL = 5, 0.7  # seconds: of the call, and from its start to the kill
RECOVERY = 12  # seconds in which a gateway may come back
SERVER_COUNTS = (1, 10)
MANY = 200
# The gateway's own failure, a program that is missing, an installation that failed.
NOT_STARTED = (RuntimeError, OSError, subprocess.CalledProcessError)


def view(gateway, label):
    """The first server's endpoint under a contestant's label: `ours-modern` is ours, other era."""
    modern = label.endswith("-modern")
    return next(e for e in gateway.endpoints if (e.era == "modern") == modern)


@contextlib.asynccontextmanager
async def running(labels, servers=1):
    """The gateways behind the labels, each started once, and a row for each that did not start."""
    gateways, failures = {}, []
    try:
        for name in dict.fromkeys(label.removesuffix("-modern") for label in labels):
            try:
                gateways[name] = await targets.start(name, servers)
            except NOT_STARTED as error:
                failures.append({"target": name, "failed": str(error)[-500:]})
        yield gateways, failures
    finally:
        for gateway in gateways.values():
            await asyncio.to_thread(gateway.stop)


class Measurement:
    """Loads of one gateway, with the CPU that it, its hosted servers and this process took."""

    def __init__(self, gateway):
        self.gateway, self.tally, self.slices = gateway, Tally(), []

    async def add(self, clients, size, **more):
        before = len(self.tally.taken)
        meter, own = self.gateway.meter(), time.process_time()
        await load(clients, size, calls=SLICE[size], tally=self.tally, **more)
        spent = (*meter.read(), time.process_time() - own)
        calls = max(1, len(self.tally.taken) - before)
        self.slices.append([seconds * 1000 / calls for seconds in spent])

    def row(self):
        """CPU a call is that of the best slice, for every target alike: a virtual machine's host
        takes the CPU away in bursts, and charges them to the process that it took it from.
        """
        row = self.tally.summary() | {"slices": len(self.slices)}
        columns = zip(("cpu", "servers_cpu", "client_cpu"), *self.slices, strict=True)
        for name, *values in columns:
            row[f"{name}_ms"] = round(min(values), 4)
            row[f"{name}_mean_ms"] = round(statistics.fmean(values), 4)
        return row


async def matrix(labels, options):
    """CPU a call and latency by callers and size; every round visits every target in turn."""
    async with running(labels) as (gateways, failures):
        for row in failures:
            yield row
        labels = [label for label in labels if label.removesuffix("-modern") in gateways]
        pick = {label: gateways[label.removesuffix("-modern")] for label in labels}
        for count, size in options.cells:
            ready = {label: await callers(view(pick[label], label), count) for label in labels}
            for clients in ready.values():
                await load(clients, size, calls=SLICE[size])
            for number in range(options.rounds):
                round_ = {label: Measurement(pick[label]) for label in labels}
                for _ in range(options.slices):
                    for label, measurement in round_.items():
                        await measurement.add(ready[label], size)
                for label, measurement in round_.items():
                    cell = {"target": label, "callers": count, "size": size, "round": number}
                    yield cell | measurement.row()
            for clients in ready.values():
                await stop(clients)


async def hol(labels, options):
    """A fast server's latency alone, beside sleeping calls, beside 10 MiB answers, in turn."""
    async with running(labels, servers=2) as (gateways, failures):
        for row in failures:
            yield row
        ready = {name: await callers(g.endpoints[0], HOL_CALLERS) for name, g in gateways.items()}
        for clients in ready.values():
            await load(clients, SMALL, calls=SLICE[SMALL])
        for number in range(options.rounds):
            for name, clients in ready.items():
                async for row in _beside(clients, gateways[name].endpoints[1]):
                    yield {"target": name, "round": number} | row
        for clients in ready.values():
            await stop(clients)


async def _beside(clients, near):
    async def fast(beside, neighbour=None):
        tally = await load(clients, SMALL, seconds=HOL_SECONDS)
        theirs = {"neighbour": await neighbour.summary()} if neighbour else {}
        return {"beside": beside} | theirs | tally.summary()

    yield await fast("nothing")
    # One call each: their load ends when the sleep does.
    async with Neighbour(near, SLEEPERS, 0.1, delay=SLEEP) as neighbour:
        await asyncio.sleep(SETTLE)
        yield await fast("sleeping", neighbour)
    yield await fast("nothing")
    async with Neighbour(near, 1, HOL_SECONDS + 2 * SETTLE, size=BIG) as neighbour:
        await asyncio.sleep(SETTLE)
        yield await fast("10 MiB", neighbour)


async def each(labels, options, measure, servers=1):
    """One gateway after the other: what `measure` tells of it, so many times."""
    for number in range(options.rounds):
        for name in labels:
            try:
                gateway = await targets.start(name, servers)
            except NOT_STARTED as error:
                yield {"target": name, "round": number, "failed": str(error)[-500:]}
                continue
            try:
                yield {"target": name, "round": number} | await measure(gateway)
            finally:
                await asyncio.to_thread(gateway.stop)


def since(start):
    return round((time.perf_counter() - start) * 1000, 1)


async def new_session(gateway):
    start, client = time.perf_counter(), Client(gateway.endpoints[0])
    await client.start()
    await client.call(text_of(64))
    took = since(start)
    await client.stop()
    return took


async def cold(labels, options):
    """From the gateway's start to its first answer, and a new session's first answer."""

    async def measure(gateway):
        row = {"start_ms": since(gateway.began)}
        sessions = [await new_session(gateway) for _ in range(5)]
        return row | {"new_session_ms": round(statistics.median(sessions), 1)}

    async for row in each(labels, options, measure):
        yield row


async def mem(labels, options):
    """PSS and processes with several hosted servers, a session each."""

    async def measure(gateway):
        clients = []
        for endpoint in gateway.endpoints[: gateway.servers]:
            clients += await callers(endpoint, 1)
            await clients[-1].call(text_of(SMALL))
        return {"servers": gateway.servers} | gateway.memory()

    for count in SERVER_COUNTS:
        async for row in each(labels, options, measure, servers=count):
            yield row


async def kill(labels, options):
    """SIGKILL of the hosted server in mid-call: when that call ends, when the next one works."""

    async def measure(gateway):
        (client,) = await callers(gateway.endpoints[0], 1)
        await client.call(text_of(SMALL))
        call = asyncio.create_task(client.call(text_of(SMALL), delay=KILL_DELAY))
        await asyncio.sleep(MID_CALL)
        start = time.perf_counter()
        for pid in gateway.server_pids():
            os.kill(pid, signal.SIGKILL)
        try:
            await call
            row = {"call": "answered"}
        except (WrongAnswerError, OSError, TimeoutError, EOFError) as error:
            row = {"call": f"{type(error).__name__}: {error}"[:200]}
        row |= {"error_ms": since(start), "same_session_ms": None}
        while time.perf_counter() < start + RECOVERY:
            try:
                await client.call(text_of(SMALL))
                return row | {"same_session_ms": since(start)}
            except (WrongAnswerError, OSError, TimeoutError, EOFError):
                await asyncio.sleep(targets.BETWEEN_TRIES)
        return row

    async for row in each(labels, options, measure):
        yield row


async def many(labels, options):
    """200 sessions at once: set-up, calls in all of them, memory a session."""

    async def measure(gateway):
        before, start = gateway.memory()["gateway_pss_mib"], time.perf_counter()
        clients = await callers(gateway.endpoints[0], MANY)
        row = {"set_up_ms": since(start)}
        measurement = Measurement(gateway)
        for _ in range(options.slices):
            await measurement.add(clients, SMALL)
        row |= measurement.row()
        grown = gateway.memory()["gateway_pss_mib"] - before
        await stop(clients)
        return row | {"kib_a_session": round(grown * 1024 / MANY, 1)}

    async for row in each(labels, options, measure):
        yield row


SUITES = {suite.__name__: suite for suite in (matrix, hol, cold, mem, kill, many)}
