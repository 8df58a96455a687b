"""Fifty active servers on one host: what they hold, that they leak nothing, and that none is a noisy neighbour.

Ten minutes by default; MCP_BRIDGE_FLEET_SECONDS for another time. The figures and their bars are shown
by tests/show_sandbox.py.
"""

import asyncio
import os
import secrets
import statistics

import pytest

from lab import recipe
from sandbox import packages
from sandbox.packages import server
from support.fleet import Fleet, Greedy, Member, p99
from support.installed import SERVERS
from support.product import digest_of, echo
from support.stocked import stocked_product

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.network]

SECONDS = float(os.environ.get("MCP_BRIDGE_FLEET_SECONDS", "600"))
WARM_UP = 60.0  # seconds of the same load before the baseline is taken
MIB = 1 << 20
LIMIT = 128  # MiB of memory of the one that fills it
FULL = 104  # MiB that it takes at once, beside its interpreter
GREEDY = ("/usr/bin/python3", f"{SERVERS}/greedy.py")
LOOPBACK = {"mode": "loopback"}
LISTED = {"mode": "list", "allow": ["192.0.2.1"]}
THOUGHT = {"thought": "x", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False}


def called(definition, tool, **arguments):
    return Member(definition["profile"], definition, tool, tuple(arguments.items()))


def clock(number, **keys):
    definition = server(f"time-{number}", packages.TIME, "--local-timezone=UTC", **keys)
    return called(definition, "get_current_time", timezone="UTC")


def thinker(number, **keys):
    definition = server(f"thinking-{number}", packages.THINKING, **keys)
    return called(definition, "sequentialthinking", **THOUGHT)


def strict(name):
    return called(echo(name, profile="strict"), "echo", text="x")


QUIET = strict("quiet")
BURNS = Member("strict", {"name": "burns", "command": GREEDY, "profile": "strict"})
FILLS = Member("strict", {**BURNS.definition, "name": "fills", "limits": {"memory": f"{LIMIT}M"}})
MEMBERS = (
    *map(clock, range(14)),
    *(clock("loopback", network=LOOPBACK), clock("list", network=LISTED)),
    *(
        called(server(f"everything-{n}", packages.EVERYTHING), "echo", message="x")
        for n in range(6)
    ),
    *(called(server(f"memory-{n}", packages.MEMORY), "read_graph") for n in range(6)),
    *map(thinker, range(4)),
    *(thinker("loopback", network=LOOPBACK), thinker("list", network=LISTED)),
    *(strict(f"echo-{n}") for n in range(13)),
    *(QUIET, BURNS, FILLS),
)


@pytest.fixture(params=recipe.SUITES)
def host(request, lab, need):
    suite = request.param
    with stocked_product(lab, suite, f"fleet-{suite}", need, packages.ALL) as product:
        yield product


async def test_fifty_active_servers_leak_nothing_and_do_not_disturb_each_other(
    host, record_property
):
    assert len(MEMBERS) == 50
    token = secrets.token_hex(16)
    names = [one.name for one in MEMBERS]
    more = {"tokens_sha256": [digest_of(token)], "timeouts": {"idle": "0s", "start": "2m"}}
    host.write_servers(*({**one.definition, **more} for one in MEMBERS))
    await host.applied(*names, within=120)
    fleet = Fleet(host, MEMBERS, token)
    greedy = (
        Greedy("beside_cpu", BURNS, "burn", {"processes": 3}),
        Greedy("beside_memory", FILLS, "fill", {"mib": FULL}),
    )
    try:
        await fleet.start()
        await fleet.load(min(WARM_UP, SECONDS / 2), QUIET, greedy)
        before, proxy_before = fleet.use(), await asyncio.to_thread(fleet.use_of_proxy)
        fleet.latencies.clear()
        await fleet.load(SECONDS, QUIET, greedy)
        after, proxy = fleet.use(), await asyncio.to_thread(fleet.use_of_proxy)
    finally:
        await fleet.drop()

    record_property("failed_calls", len(fleet.failed))
    assert fleet.failed == []
    # Without these two the last figures would mean nothing.
    burned = sum(fleet.told["beside_cpu"]) / fleet.lasted["beside_cpu"]
    record_property("of_cpu_quota_burned", round(burned, 2))
    record_property("of_memory_limit_filled", round(fleet.peak(FILLS) / (LIMIT * MIB), 2))

    for kind in ("python", "node", "strict"):
        held = [after[one.name].memory / MIB for one in MEMBERS if one.kind == kind]
        record_property(f"{kind}_servers", len(held))
        record_property(f"{kind}_mib_a_server", round(statistics.median(held), 1))
        record_property(f"{kind}_mib_the_largest", round(max(held), 1))
    record_property("mib_of_all_servers", round(sum(one.memory for one in after.values()) / MIB))
    record_property("mib_of_the_proxy", round(proxy.memory / MIB, 1))

    total = sum(one.memory for one in before.values())
    grown = {name: after[name].memory - before[name].memory for name in names}
    record_property("servers_growth", round(1 + sum(grown.values()) / total, 3))
    record_property("mib_growth_of_one_server", round(max(grown.values()) / MIB, 1))
    record_property("proxy_growth", round(proxy.memory / proxy_before.memory, 3))
    more = sum(after[name].descriptors - before[name].descriptors for name in names)
    record_property("more_descriptors_of_servers", more)
    record_property("more_descriptors_of_proxy", proxy.descriptors - proxy_before.descriptors)

    alone = p99(fleet.latencies["alone"])
    record_property("p99_ms_alone", round(alone * 1000, 1))
    for one in greedy:
        found = fleet.latencies[one.window]
        record_property(f"calls_{one.window}", len(found))
        record_property(f"p99_{one.window}", round(p99(found) / alone, 2))
    record_property("calls", fleet.calls.total())
