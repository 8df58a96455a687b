"""What records cost: a proxy with them beside one without, in turns, in one run."""

import asyncio
import os
import statistics
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from support.audited import verified
from support.bridge import Bridge
from support.fakes import echo

CLIENTS = 8
CALLS = 640  # in one turn
TURNS = 13
# CPU of the proxy per call, with arguments of 100 characters, against the same without records. The
# bar of all that is decided of a call is 1.6; records have the larger part of what that leaves.
BAR = 1.4
QUIET = {"log": {"access": "off"}}


def cpu(bridge):
    """Seconds of the proxy's process, all threads."""
    fields = Path(f"/proc/{bridge.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def turn(clients):
    async def calls(client):
        for _ in range(CALLS // CLIENTS):
            assert await client.text("echo", text="word " * 20) == "word " * 20

    await asyncio.gather(*map(calls, clients))


@pytest.mark.soak  # a speed, which only a quiet machine shows
async def test_records_cost_a_fraction_of_a_call(record_property):
    used = {"without": [], "with": []}
    without = {**QUIET, "audit": {"file": False, "stderr": "off"}}
    async with AsyncExitStack() as stack:
        sides = {}
        for name, host in (("without", without), ("with", QUIET)):
            bridge = await stack.enter_async_context(Bridge([echo("files")], host=host))
            sessions = [bridge.session("files") for _ in range(CLIENTS)]
            sides[name] = bridge, [await stack.enter_async_context(each) for each in sessions]
            await turn(sides[name][1])
        for _ in range(TURNS):
            for name, (bridge, clients) in sides.items():
                before = cpu(bridge)
                await turn(clients)
                used[name].append(cpu(bridge) - before)
        assert verified(sides["with"][0])["last"]["seq"] > TURNS * CALLS
    # The median of pairs that were measured one after the other: the host is shared.
    pairs = [(on - off, on / off) for off, on in zip(*used.values(), strict=True)]
    more, ratio = (statistics.median(column) for column in zip(*pairs, strict=True))
    record_property("audit_cpu_ratio", f"{ratio:.2f}")
    record_property("audit_us_per_call", f"{1e6 * more / CALLS:.0f}")

    assert ratio <= BAR
