"""Clients that vanish leave nothing behind (BUGS D10, A4)."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from support import proc
from support.bridge import Bridge
from support.fakes import echo
from support.waiting import eventually

CLIENTS = 300
AT_ONCE = 50


async def test_three_hundred_clients_that_reset_their_streams_leave_no_descriptor():
    async with Bridge([echo("files")]) as bridge:
        async with bridge.session("files") as session:
            await session.text("pid")
        await eventually(lambda: not connections(bridge))
        before = proc.descriptors(bridge.pid)
        gate = asyncio.Semaphore(AT_ONCE)

        async def visit(number):
            async with gate, bridge.session("files") as session:
                stream = await session.listen()
                assert stream.status == 200
                call = await session.open_stream(
                    session.call_of("progress", {"delay": 0.05, "steps": 200}, number, progress=1)
                ) if number % 3 == 0 else None  # fmt: skip
                stream.reset()
                if call is not None:
                    call.reset()

        await asyncio.gather(*map(visit, range(CLIENTS)))
        await eventually(lambda: proc.descriptors(bridge.pid) <= before, within=10)
        async with bridge.session("files") as session:
            assert await session.text("echo", text="lives") == "lives"


async def test_clients_that_end_their_session_and_go_at_once_are_no_fault():
    async with Bridge([echo("files")]) as bridge:

        async def visit():
            session = bridge.session("files")
            await session.initialize()
            stream = await session.listen()
            ended = asyncio.create_task(session.delete())
            await asyncio.wait({ended}, timeout=0)  # it is on its way
            stream.reset()
            await ended
            await session.drop()

        for _ in range(20):
            await asyncio.gather(*(visit() for _ in range(5)))
        # At the end the log is looked through for tracebacks.


def connections(bridge):
    """Established connections on the proxy's port, the operator's apart."""
    port = f":{urlsplit(bridge.base).port:04X}"
    rows = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    return [row for row in rows if row.split()[1].endswith(port) and row.split()[3] == "01"]


async def test_five_hundred_calls_of_each_era_leave_one_process_and_no_descriptor():
    async with Bridge([echo("files")]) as bridge:
        async with bridge.session("files") as session, bridge.modern("files") as modern:
            await session.text("pid")
            await modern.text("pid")
            before = proc.descriptors(bridge.pid)
            for _ in range(500):
                await session.text("echo", text="x")
                await modern.text("echo", text="x")
            assert len(bridge.processes()) == 1
            assert proc.descriptors(bridge.pid) <= before


async def test_thirty_starts_and_crashes_leave_no_descriptor_and_no_zombie():
    settings = {"breaker": {"crashes": 100}}
    async with Bridge([echo("files", **settings)]) as bridge, bridge.session("files") as session:
        await session.call("crash")
        await session.text("pid")
        before = proc.descriptors(bridge.pid)
        for _ in range(30):
            await session.call("crash")
        await session.text("pid")
        await eventually(lambda: proc.descriptors(bridge.pid) <= before)
        await eventually(lambda: not proc.zombies(bridge.pid))
        assert len(bridge.processes()) == 1
