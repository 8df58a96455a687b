"""Clients that vanish without a word, or take nothing, and what that may cost (PROTOCOL A17, C4)."""

import pytest

from support import proc
from support.bridge import Bridge
from support.fakes import echo
from support.waiting import eventually
from support.wire import narrow

CHANGED = "notifications/tools/list_changed"


async def change(bridge):
    async with bridge.modern("files") as caller:
        await caller.text("list_changed", tool="x")


@pytest.mark.requirement("A17")
async def test_a_client_that_vanishes_is_found_by_what_it_does_not_take():
    limits = {"limits": {"write_timeout": "1s"}}
    async with Bridge([echo("files")], host=limits) as bridge:
        async with bridge.session("files") as session:
            await session.text("pid")
            stays, goes = await session.listen(), None
            async with bridge.session("files") as other:
                goes = await other.listen()
                await change(bridge)
                await goes.until(CHANGED)
                await bridge_quiet(bridge)
                before = proc.descriptors(bridge.pid)
                goes.vanish()
                await change(bridge)
                await eventually(lambda: proc.descriptors(bridge.pid) < before, within=20)
                again = await other.listen(after=goes.last_id)
                assert (await again.event())["method"] == CHANGED  # what it never took
                await again.close()
            assert (await stays.until(CHANGED))["method"] == CHANGED
            await stays.close()
            await goes.close()


async def bridge_quiet(bridge):
    """The connections of short-lived clients are closed."""
    counts = []

    def same():
        counts.append(proc.descriptors(bridge.pid))
        return len(counts) > 3 and len(set(counts[-3:])) == 1

    await eventually(same)


@pytest.mark.requirement("C4")
async def test_a_client_that_vanished_does_not_keep_its_session_from_a_new_stream():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        gone = await session.listen()
        gone.vanish()
        refused = await session.send(method="GET", headers={"Accept": "text/event-stream"})
        assert (refused.status, refused.header("Retry-After")) == (409, "1")

        async def accepted():
            fresh = await session.listen()
            await fresh.close()
            return fresh.status == 200

        # Far below limits.write_timeout, which would find it at last.
        await eventually(accepted, within=20)
        await gone.close()


@pytest.mark.requirement("C4")
async def test_a_client_that_is_there_keeps_its_stream_however_often_another_is_asked_for():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        own = await session.listen()
        for _ in range(20):
            refused = await session.send(method="GET", headers={"Accept": "text/event-stream"})
            assert refused.status == 409
        await change(bridge)
        assert (await own.event())["method"] == CHANGED
        assert own.comments == 20
        await own.close()


@pytest.mark.requirement("A17", "C8")
async def test_a_reader_that_takes_nothing_is_cut_when_its_client_comes_back():
    """Its connection alone would be held for limits.write_timeout."""
    size = 1 << 20  # 24 of them are more than the kernel takes for a connection
    limits = {"limits": {"stream_bytes": "64M"}}
    async with Bridge([echo("files")], host=limits) as bridge, bridge.session("files") as session:
        connection = await narrow(bridge.base)
        headers = {**session.headers(), "Accept": "text/event-stream"}
        stuck = await connection.stream("GET", session.target, headers)
        await change(bridge)
        await stuck.until(CHANGED)
        async with bridge.modern("files") as caller:
            for _ in range(24):
                params = {"data": "x" * size}
                await caller.text("custom", method=CHANGED, params=params)
        await bridge_quiet(bridge)
        before = proc.descriptors(bridge.pid)
        again = await session.listen(after=stuck.last_id)
        await eventually(lambda: proc.descriptors(bridge.pid) == before)  # one came, one went
        assert (await again.event())["params"]["data"] == "x" * size
        await again.close()
        await stuck.close()
