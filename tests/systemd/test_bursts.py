"""Crashes in bursts, with a systemd and a bus that go away meanwhile: each is counted once."""

import asyncio
import os
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from autobot_mcp_bridge.supervision.unit_events import Ended
from autobot_mcp_bridge.supervision.unit_paths import unit_of
from lab import labs, recipe
from support import deeds, installed
from support.buses import shape, watching
from support.waiting import eventually

pytestmark = pytest.mark.lab

# Each disturbance once; `make show-units` asks for more.
ROUNDS = int(os.environ.get("MCP_BRIDGE_WATCHER_ROUNDS", "4"))
# What happens in the middle of a burst, in turn.
DISTURBANCES = (
    None,
    ("systemctl", "daemon-reexec"),
    ("systemctl", "restart", "dbus.service"),
    ("systemctl", "daemon-reload"),
)
CAUSES = {
    "exit3": ("exit-code", 1, 3, False),
    "kill": ("signal", 2, 9, False),
    "clean": ("success", 1, 0, False),
}
TRIVIAL = [f"{deed}.n{number}" for number in range(55) for deed in CAUSES]
# Units that have failed stay loaded; of a clean end without a bus nothing is left to read.
CRASHING = [name for name in TRIVIAL if not name.startswith("clean")]
SANDBOXED = [f"held{number}" for number in range(12)]


@pytest.fixture(scope="module", params=recipe.SUITES)
def machine(request, lab):
    up = labs.up(lab, f"burst-{request.param}", request.param)
    yield up
    up.down()


@pytest.fixture
def trivial(machine):
    deeds.lay(machine)
    yield machine
    machine.check("sh", "-c", "rm -r /etc/systemd/system/autobot-mcp-bridge@*")
    machine.check("systemctl", "daemon-reload")


@pytest.fixture
def sandboxed(machine):
    """The project's own units, started by connections as the proxy does."""
    installed.install(machine)
    specs = [installed.spec_of(name, "/bin/cat") for name in SANDBOXED]
    with installed.instances(machine, specs) as made:
        yield made


def held():
    """How many descriptors and tasks there are."""
    return len(list(Path("/proc/self/fd").iterdir())), len(asyncio.all_tasks())


class Injected:
    """The ends that a test has caused, beside those that its watcher tells."""

    def __init__(self, own):
        self.own = own
        self.ends = Counter()
        self.before = held()

    async def told(self, instances):
        """Wait until as many ends are told as were caused, now that of these, too."""
        self.ends.update(instances)
        await self.own.tells_ends(self.ends.total())
        await self.own.run("systemctl", "reset-failed")

    async def judge(self, record, kind, causes):
        """Nothing lost, nothing twice, each with its cause; descriptors and tasks as before."""
        with suppress(AssertionError):  # the last units may still be read
            await eventually(lambda: held() == self.before)
        after = held()
        told = self.own.told(Ended)
        crashes = sum(n for name, n in self.ends.items() if causes(name)[0] != "success")
        counted = {event.invocation for event in told if shape(event)[0] != "success"}
        record(f"{kind}_starts", self.ends.total())
        record(f"{kind}_crashes_not_counted", crashes - len(counted))
        record(f"{kind}_descriptors_more", after[0] - self.before[0])
        assert set(self.own.ends().values()) == {1}
        assert Counter(event.instance for event in told) == self.ends
        assert [event for event in told if shape(event) != causes(event.instance)] == []
        assert after == self.before


async def test_every_end_of_trivial_units_is_told_once_with_its_cause(
    trivial, library, record_property
):
    async with watching(trivial, library, *TRIVIAL) as own:
        injected = Injected(own)
        for number in range(ROUNDS):
            disturbance = DISTURBANCES[number % len(DISTURBANCES)]
            instances = CRASHING if disturbance else TRIVIAL
            units = [unit_of(instance) for instance in instances]
            half = len(units) // 2
            await own.run("systemctl", "start", "--no-block", *units[:half])
            if disturbance:
                await own.run(*disturbance)
            await own.run("systemctl", "start", "--no-block", *units[half:])
            await injected.told(instances)
        # Whatever would be told a second time comes before this.
        await own.run("systemctl", "start", "--no-block", unit_of("exit3.n0"))
        await injected.told(["exit3.n0"])
        await injected.judge(record_property, "trivial", lambda name: CAUSES[name.split(".")[0]])


async def test_every_kill_of_a_sandboxed_server_is_told_once(sandboxed, library, record_property):
    machine, half = sandboxed[0].container, len(sandboxed) // 2
    units = [server.service for server in sandboxed]
    async with watching(machine, library, *SANDBOXED) as own:
        injected = Injected(own)
        for number in range(ROUNDS):
            with ExitStack() as pipes:
                await asyncio.to_thread(start, sandboxed[:half], pipes)
                if disturbance := DISTURBANCES[number % len(DISTURBANCES)]:
                    await own.run(*disturbance)
                await asyncio.to_thread(start, sandboxed[half:], pipes)
                await own.run("systemctl", "kill", "--signal=KILL", "--kill-whom=main", *units)
                await injected.told(SANDBOXED)
        await injected.judge(record_property, "sandboxed", lambda _name: CAUSES["kill"])


def start(servers, pipes):
    """Connect to each and wait until it runs; it goes on as long as its pipes are open."""
    for handed in [pipes.enter_context(server.start()) for server in servers]:
        assert handed.rest() == b""
