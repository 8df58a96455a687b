"""The watcher against real systemd and a real dbus-daemon, the same with either library."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from autobot_mcp_bridge.model.death import DeathCause
from autobot_mcp_bridge.supervision.bus import BusError, BusUnavailableError, NoSuchUnitError
from autobot_mcp_bridge.supervision.unit_events import Ended, OperatorStop, Started
from autobot_mcp_bridge.supervision.unit_paths import Kind, path_of, unit_of
from lab import labs, recipe
from support import deeds
from support.buses import bus_path, shape, watching
from support.waiting import eventually

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module", params=recipe.SUITES)
def machine(request, lab):
    up = labs.up(lab, f"watch-{request.param}"[:15], request.param)
    deeds.lay(up)
    yield up
    up.down()


@pytest.fixture(autouse=True)
def forgotten(machine):
    """Whatever an earlier test has left behind is at rest and not loaded any more."""
    machine.check("systemctl", "start", "dbus.socket")
    machine.check("sh", "-c", "systemctl stop 'autobot-mcp-bridge@*'; systemctl reset-failed")


@pytest.mark.parametrize(
    ("instance", "expected", "word"),
    [
        ("exit3", ("exit-code", 1, 3, False), DeathCause.EXIT),
        ("clean", ("success", 1, 0, False), DeathCause.EXIT),
        ("kill", ("signal", 2, 9, False), DeathCause.SIGNAL),
        ("forbidden", ("signal", 2, 31, False), DeathCause.SECCOMP),
        ("nothing", ("exit-code", 1, 203, False), DeathCause.EXEC),
        ("nobody", ("exit-code", 1, 217, False), DeathCause.SETUP),
        ("unmounted", ("exit-code", 1, 226, False), DeathCause.SETUP),
        ("uncredited", ("exit-code", 1, 243, False), DeathCause.SETUP),
        ("sleep.limited", ("timeout", 2, 15, False), DeathCause.TIMEOUT),
        ("sleep.watched", ("watchdog", 2, 6, False), DeathCause.WATCHDOG),
    ],
)
async def test_an_end_is_told_once_with_its_cause(machine, library, instance, expected, word):
    async with watching(machine, library, instance) as own:
        await own.run("systemctl", "start", "--no-block", unit_of(instance))
        ended = await own.tells(Ended, instance)
        await own.watcher.reset_failed(instance) if instance != "clean" else None
        await own.run("systemctl", "start", "--no-block", unit_of(instance))
        again = await own.tells(Ended, instance, 2)

    assert shape(ended) == expected == shape(again)
    assert ended.how.death().cause is word
    assert set(own.ends().values()) == {1} and len(own.ends()) == 2
    assert [event.invocation for event in own.told(Started)] == [
        ended.invocation,
        again.invocation,
    ]
    assert own.told(OperatorStop) == []


async def test_an_operator_s_stop_is_told_from_one_of_ours(machine, library):
    async with watching(machine, library, "sleep", "sleep.other") as own:
        await own.watcher.start("sleep")
        ours = await own.tells(Started, "sleep")
        await own.watcher.stop("sleep", ours.invocation)
        by_us = await own.tells(Ended, "sleep")
        await own.shows("sleep", Kind.SERVICE, active="inactive", job=0)
        assert own.told(OperatorStop) == []

        await own.run("systemctl", "start", unit_of("sleep"))
        await own.tells(Started, "sleep", 2)
        await own.run("systemctl", "stop", unit_of("sleep"))
        by_operator = await own.tells(Ended, "sleep", 2)
        stop = await own.tells(OperatorStop, "sleep")

    assert (by_us.asked_by_job, by_us.ours) == (True, True)
    assert (by_operator.asked_by_job, by_operator.ours) == (True, False)
    assert own.told(OperatorStop) == [stop]
    assert set(own.ends().values()) == {1}


async def test_an_operator_s_stop_of_a_server_at_rest_is_noticed(machine, library):
    async with watching(machine, library, "sleep") as own:
        await own.run("systemctl", "stop", unit_of("sleep"))
        stop = await own.tells(OperatorStop, "sleep")
        await own.watcher.stop("sleep")
        await own.run("systemctl", "start", unit_of("sleep"))
        await own.tells(Started, "sleep")
        await own.run("systemctl", "restart", unit_of("sleep"))
        await own.tells(Started, "sleep", 2)
        await own.watcher.stop("sleep")
        await own.shows("sleep", Kind.SERVICE, active="inactive", job=0)

    assert stop.kind is Kind.SERVICE
    assert own.told(OperatorStop) == [stop]
    assert [(event.asked_by_job, event.ours) for event in own.told(Ended)] == [
        (True, False),
        (True, True),
    ]


async def test_a_stop_for_an_invocation_that_is_over_does_not_hit_the_next_one(machine, library):
    async with watching(machine, library, "sleep") as own:
        await own.watcher.start("sleep")
        first = await own.tells(Started, "sleep")
        await own.run("systemctl", "restart", unit_of("sleep"))
        second = await own.tells(Started, "sleep", 2)

        with pytest.raises(NoSuchUnitError, match="invocation"):
            await own.watcher.stop("sleep", first.invocation)
        await own.shows("sleep", Kind.SERVICE, active="active", invocation=second.invocation)
        await own.watcher.stop("sleep", second.invocation)
        await own.shows("sleep", Kind.SERVICE, active="inactive")


async def test_a_crash_is_none_of_a_stop_that_comes_after_it(machine, library):
    async with watching(machine, library, "sleep", "stubborn") as own:
        await own.watcher.start("sleep")
        await own.tells(Started, "sleep")
        await own.run("systemctl", "kill", "--signal=KILL", unit_of("sleep"))
        crash = await own.tells(Ended, "sleep")
        await own.watcher.start("stubborn")
        await own.tells(Started, "stubborn")
        await own.run("systemctl", "stop", unit_of("stubborn"))
        stopped = await own.tells(Ended, "stubborn")

    assert shape(crash) == ("signal", 2, 9, False)
    assert shape(stopped) == ("exit-code", 1, 7, True)


async def test_a_masked_unit_and_one_that_is_not_are_told_apart(machine, library):
    async with watching(machine, library, "masked", "clean") as own:
        assert not own.watcher.state("masked").masked
        await own.run("systemctl", "mask", unit_of("masked"))
        await own.shows("masked", Kind.SERVICE, load_state="masked", file_state="masked")
        with pytest.raises(BusError, match="masked"):
            await own.watcher.start("masked")
        assert own.watcher.state("clean").load_state == "loaded"
        await own.run("systemctl", "unmask", unit_of("masked"))
        await own.shows("masked", Kind.SERVICE, load_state="loaded")


async def test_a_signal_that_another_than_systemd_sends_is_not_believed(machine, library):
    async with watching(machine, library, "sleep") as own:
        connection = own.watcher._manager._bus._connection
        arrived = []
        connection.add_message_handler(lambda message: arrived.append(message.member) and None)
        changed = ("org.freedesktop.systemd1.Unit", "2", "ActiveState", "s", "failed")
        await own.run(
            *("busctl", "emit", f"--destination={connection.unique_name}"),
            *(path_of(unit_of("sleep")), "org.freedesktop.DBus.Properties", "PropertiesChanged"),
            *("sa{sv}as", *changed, "InvocationID", "ay", "16", *("7",) * 16, "0"),
        )
        await eventually(lambda: arrived)
        assert own.watcher.state("sleep").active == "inactive"
        await own.watcher.start("sleep")
        await own.tells(Started, "sleep")
        await own.watcher.stop("sleep")
        await own.tells(Ended, "sleep")

    assert len(own.told(Started)) == len(own.told(Ended)) == 1


async def test_loaded_units_are_listed_and_any_unit_can_be_read(machine, library):
    async with watching(machine, library, "sleep", "clean") as own:
        await own.watcher.start("sleep")
        started = await own.tells(Started, "sleep")
        manager = own.watcher._manager
        listed = await manager.list_units("autobot-mcp-bridge@s*.service")
        loaded, other = await manager.load(unit_of("sleep")), await manager.load(unit_of("clean"))
        await own.watcher.stop("sleep")
        await own.tells(Ended, "sleep")

    assert listed == {unit_of("sleep")}
    assert loaded.invocation == started.invocation
    assert (other.active, other.load_state, other.file_state) == ("inactive", "loaded", "static")


# Everything is loaded before the user changes: the interpreter may lie where it cannot look.
AS_NOBODY = """
import asyncio, os, sys, encodings.idna
from autobot_mcp_bridge.supervision.bus import AccessDeniedError
from autobot_mcp_bridge.supervision.watcher import Watcher

async def main():
    watcher = Watcher(lambda _event: None, path="system_bus_socket", library=sys.argv[2])
    os.chdir(sys.argv[1])  # reached as root, kept as current directory
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    running = asyncio.create_task(watcher.run())
    watcher.watch(["clean"])
    async with asyncio.timeout(20):
        await watcher.settled()
    print(watcher.state("clean").load_state)
    try:
        await watcher.start("clean")
    except AccessDeniedError as error:
        print("denied", error)
    running.cancel()
    await asyncio.wait({running})

asyncio.run(main())
"""


def test_a_user_without_a_rule_may_look_but_not_start(machine, library):
    folder = Path(bus_path(machine)).parent
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, folder, library],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    loaded, denied = done.stdout.splitlines() or ["", done.stderr]
    assert loaded == "loaded"
    assert denied.startswith("denied StartUnit")


async def test_a_socket_s_state_and_its_operator_s_stop_are_told(machine, library):
    async with watching(machine, library, "sleep") as own:
        await own.watcher.start("sleep", Kind.SOCKET)
        await own.shows("sleep", Kind.SOCKET, active="active", sub="listening")
        await own.watcher.stop("sleep", kind=Kind.SOCKET)
        await own.shows("sleep", Kind.SOCKET, active="inactive", job=0)
        assert own.told(OperatorStop) == []

        await own.watcher.start("sleep", Kind.SOCKET)
        await own.shows("sleep", Kind.SOCKET, active="active")
        await own.run("systemctl", "stop", unit_of("sleep", Kind.SOCKET))
        stop = await own.tells(OperatorStop, "sleep")

    assert stop.kind is Kind.SOCKET


async def test_instances_that_are_no_longer_watched_are_forgotten(machine, library):
    async with watching(machine, library, "exit3", "kill") as own:
        own.watcher.watch(["kill"])
        assert own.watcher.state("exit3") is None
        await own.run("sh", "-c", f"systemctl start {unit_of('exit3')} {unit_of('kill')}; true")
        await own.tells(Ended, "kill")

    assert own.told(Ended, "exit3") == own.told(Started, "exit3") == []


async def test_an_end_while_there_is_no_bus_is_told_afterwards(machine, library):
    async with watching(machine, library, "sleep", "sleep.other") as own:
        for instance in ("sleep", "sleep.other"):
            await own.watcher.start(instance)
            await own.tells(Started, instance)
        await own.run("systemctl", "stop", "dbus.socket", "dbus.service")
        await eventually(lambda: not own.watcher.is_connected)
        with pytest.raises(BusUnavailableError):
            await own.watcher.stop("sleep")
        await own.run("systemctl", "kill", "--signal=KILL", unit_of("sleep"))
        await own.run("systemctl", "start", "dbus.socket")
        ended = await own.tells(Ended, "sleep", within=20)
        await own.run("systemctl", "reset-failed")
        await own.watcher.stop("sleep.other")
        other = await own.tells(Ended, "sleep.other")

    assert shape(ended) == ("signal", 2, 9, False)
    assert (other.asked_by_job, other.ours) == (True, True)
    assert set(own.ends().values()) == {1}


async def test_repeated_signals_are_no_changes(machine, library):
    async with watching(machine, library, "exit3") as own:
        await own.run("systemctl", "start", "--no-block", unit_of("exit3"))
        await own.tells(Ended, "exit3")

    changes = own.changes("exit3")
    assert changes
    assert [pair for pair in pairwise(changes) if pair[0] == pair[1]] == []
