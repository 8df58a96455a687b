"""A bus that is not there, ends at once, or says nothing: the same with either library."""

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager, suppress

import pytest

from autobot_mcp_bridge.supervision import bus as bus_module
from autobot_mcp_bridge.supervision import bus_library
from autobot_mcp_bridge.supervision.bus import Bus, BusUnavailableError, Call
from autobot_mcp_bridge.supervision.watcher import Watcher
from support.waiting import eventually

NOTHING = Call("/", "org.example.None", "Nothing")


@pytest.fixture(params=bus_library.LIBRARIES)
def library(request, need):
    need(request.param)
    return request.param


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(bus_module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(bus_module, "LONGEST_PAUSE", 0.004)
    monkeypatch.setattr(bus_module, "CONNECT_TIMEOUT", 0.1)


class Owner:
    def connected(self):
        raise AssertionError("there is nothing to connect to")

    disconnected = connected

    def signalled(self, signal):
        raise AssertionError(signal)


@asynccontextmanager
async def running(path, library):
    own = Bus(Owner(), rules=[], path=str(path), library=library)
    task = asyncio.create_task(own.run())
    try:
        yield own
    finally:
        assert not task.done()
        task.cancel()
        await asyncio.wait({task})


@asynccontextmanager
async def listener(path, greet):
    """Something that is no bus; `greet` gets the stream of each connection."""
    came = []

    async def connected(reader, writer):
        came.append(writer)
        await greet(reader, writer)

    server = await asyncio.start_unix_server(connected, path)
    try:
        yield came
    finally:
        server.close()
        for writer in came:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


def tries(caplog):
    return [record.getMessage() for record in caplog.records if "no bus at" in record.getMessage()]


async def test_a_bus_that_is_not_there_is_named_and_tried_again(tmp_path, library, caplog):
    caplog.set_level("INFO")
    async with running(tmp_path / "bus", library) as own:
        await eventually(lambda: len(tries(caplog)) > 4)
        with pytest.raises(BusUnavailableError, match=f"no connection to the bus at {tmp_path}"):
            await own.call(NOTHING)

    assert str(tmp_path / "bus") in tries(caplog)[0] and "No such file" in tries(caplog)[0]
    # People are told once it lasts, not of each restart of dbus.
    levels = [record.levelname for record in caplog.records]
    assert levels[0] == "INFO" and "WARNING" in levels


async def test_a_bus_that_ends_each_connection_is_tried_again(tmp_path, library, caplog):
    caplog.set_level("INFO")

    async def end(_reader, writer):
        writer.close()

    async with listener(tmp_path / "bus", end) as came, running(tmp_path / "bus", library):
        await eventually(lambda: len(came) > 3 and len(tries(caplog)) > 3)


async def test_a_bus_that_ends_in_the_middle_of_letting_us_in_is_tried_again(
    tmp_path, library, caplog
):
    caplog.set_level("INFO")

    async def end(reader, writer):
        await reader.readline()
        writer.write(b"O")
        writer.close()

    async with listener(tmp_path / "bus", end) as came, running(tmp_path / "bus", library):
        await eventually(lambda: len(came) > 3 and len(tries(caplog)) > 3)


async def test_a_bus_that_says_nothing_is_given_up_in_time(tmp_path, library, caplog):
    caplog.set_level("INFO")

    async def wait(reader, _writer):
        await reader.read()

    async with listener(tmp_path / "bus", wait) as came, running(tmp_path / "bus", library):
        await eventually(lambda: len(came) > 2)

    assert "no answer in time" in tries(caplog)[0]


async def test_a_watcher_without_a_bus_waits_and_knows_nothing(tmp_path, library):
    watcher = Watcher(print, path=str(tmp_path / "bus"), library=library)
    task = asyncio.create_task(watcher.run())
    watcher.watch(["files"])
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await watcher.settled()
        with pytest.raises(BusUnavailableError):
            await watcher.start("files")
        assert (watcher.is_connected, watcher.state("files")) == (False, None)
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait({task})


def test_a_library_that_is_not_known_is_refused():
    with pytest.raises(BusUnavailableError, match="dbus_fast, dbus_next"):
        Bus(Owner(), rules=[], library="dbus_slow")


def test_a_proxy_without_systemd_loads_no_library_for_a_bus():
    program = (
        "import sys; from autobot_mcp_bridge.cli import main, serve;"
        "print([name for name in sys.modules if name.startswith('dbus')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "[]"
