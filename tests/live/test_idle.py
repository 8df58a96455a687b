"""Started by the first call, stopped when idle, woken by the next (NV-06; BUGS A7, A14, A15)."""

import asyncio
import json

import pytest

from support.bridge import Bridge
from support.client import answer_to, code_of
from support.fakes import echo
from support.waiting import PATIENCE, WITHIN, eventually, remains

IDLE = {"timeouts": {"idle": "300ms", "stop": "2s"}}
STARTS = ("--starts", "starts")


def starts(bridge, *directory):
    path = bridge.state_dir.joinpath(*(directory or ("default", "-", "files")), "starts")
    return len(path.read_text(encoding="utf-8").split()) if path.exists() else 0


async def test_an_unused_server_has_no_process():
    async with Bridge([echo("files", *STARTS)]) as bridge:
        assert await bridge.state("files") == "sleeping"
        assert (await bridge.server("files"))["pid"] is None
        assert not bridge.processes()


async def test_a_warm_server_runs_without_a_call():
    async with Bridge([echo("files", *STARTS, warm=True)]) as bridge:
        await bridge.in_state("files", "ready")
        assert starts(bridge) == 1


async def test_twenty_first_initializes_at_once_start_one_process():
    async with Bridge([echo("files", *STARTS, "--start", "0.3")]) as bridge:
        sessions = [bridge.session("files") for _ in range(20)]
        await asyncio.gather(*(session.initialize() for session in sessions))
        pids = {await session.text("pid") for session in sessions}
        assert len(pids) == 1
        assert starts(bridge) == 1
        assert len({session.session for session in sessions}) == 20
        await asyncio.gather(*(session.drop() for session in sessions))


async def test_twenty_first_modern_calls_at_once_start_one_process():
    async with Bridge([echo("files", *STARTS, "--start", "0.3")]) as bridge:
        async with bridge.modern("files") as client:
            pids = await asyncio.gather(*(client.text("pid") for _ in range(20)))
        assert len(set(pids)) == 1
        assert starts(bridge) == 1


@pytest.mark.requirement("NV-06")
async def test_an_idle_server_is_stopped_and_the_next_call_of_the_session_wakes_it():
    async with Bridge([echo("files", *STARTS, **IDLE)]) as bridge:
        async with bridge.session("files") as session:
            pid = await session.text("pid")
            await bridge.in_state("files", "sleeping")
            await eventually(lambda: not bridge.processes())
            assert await session.text("pid") != pid
            assert starts(bridge) == 2
        assert await bridge.metric("mcp_bridge_crashes_total", server="files") == 0


async def test_a_call_in_flight_keeps_the_server_awake():
    async with Bridge([echo("files", **IDLE)]) as bridge, bridge.session("files") as session:
        assert await session.text("echo", text="slow", delay=1.2) == "slow"
        assert await bridge.metric("mcp_bridge_starts_total", server="files") == 1


async def test_the_tools_of_a_sleeping_server_are_listed_without_a_start():
    async with Bridge([echo("files", *STARTS, **IDLE)]) as bridge:
        async with bridge.session("files") as session, bridge.modern("files") as modern:
            listed = await session.tools()
            assert await modern.tools() == listed
            await bridge.in_state("files", "sleeping")
            assert await session.tools() == listed
            assert await modern.tools() == listed
            async with bridge.session("files") as late:
                assert await late.tools() == listed
            assert (await modern.request("server/discover"))["result"]["capabilities"]
            assert await bridge.state("files") == "sleeping"
            assert starts(bridge) == 1


async def test_a_new_process_is_told_the_subscriptions_and_the_log_level():
    uri = "note:///one"
    async with Bridge([echo("files", **IDLE)]) as bridge, bridge.session("files") as session:
        await session.request("resources/subscribe", {"uri": uri})
        await session.request("logging/setLevel", {"level": "debug"})
        await bridge.in_state("files", "sleeping")
        state = json.loads(await session.text("state"))
        assert state["subscribed"] == [uri]
        assert state["level"] == "debug"


async def test_a_session_with_an_open_stream_lives_through_the_sleep():
    async with Bridge([echo("files", **IDLE)]) as bridge, bridge.session("files") as session:
        stream = await session.listen()
        await session.text("counter")
        await bridge.in_state("files", "sleeping")
        assert await session.text("counter") == "1"
        async with bridge.modern("files") as caller:
            await caller.text("list_changed", tool="fresh")
        await stream.until("notifications/tools/list_changed")
        await stream.close()


async def test_a_list_that_differs_in_the_new_process_is_announced():
    async with Bridge([echo("files", "--tools", "one")]) as bridge:
        async with bridge.session("files") as session:
            assert "one" in await session.tools()
            stream = await session.listen()
            bridge.write([echo("files", "--tools", "two")])
            await bridge.reload()
            await stream.until("notifications/tools/list_changed")
            assert "two" in await session.tools()
            await stream.close()


async def test_a_server_with_idle_zero_is_never_stopped():
    async with Bridge([echo("files", timeouts={"idle": 0})]) as bridge:
        async with bridge.modern("files") as client:
            await client.text("pid")

            async def awake():
                return await bridge.state("files") == "ready"

            await remains(awake, during=1.0)


@pytest.mark.requirement("B7")
@pytest.mark.parametrize("limit", ["sessions_per_server", "sessions_per_token"])
async def test_sessions_above_the_limit_are_refused_with_when_to_retry(limit):
    async with Bridge([echo("files")], host={"limits": {limit: 2}}) as bridge:
        async with bridge.session("files") as one, bridge.session("files"):
            async with bridge.session("files", opened=False) as third:
                response = await third.send(third.initialize_of(1))
                assert response.status == 503
                assert int(response.header("Retry-After") or 0) >= 1
                data = answer_to(response, 1)["error"]["data"]
                assert data["code"] == "too_many_sessions"
                await one.delete()
                await third.initialize()


async def test_calls_above_the_limit_are_refused_by_a_running_server_too():
    limits = {"limits": {"calls_per_server": 2}}
    async with Bridge([echo("files")], host=limits) as bridge, bridge.modern("files") as client:
        await client.text("pid")
        calls = [asyncio.create_task(client.call("wait", {"tag": "x"})) for _ in range(4)]
        done, open_ones = await asyncio.wait(
            calls, timeout=WITHIN * PATIENCE, return_when=asyncio.FIRST_COMPLETED
        )
        assert {code_of(call.result()) for call in done} == {"queue_full"}
        for call in open_ones:
            call.cancel()
        await asyncio.wait(open_ones)


@pytest.mark.requirement("B7")
async def test_a_session_without_requests_ends():
    async with Bridge([echo("files")], host={"limits": {"session_idle": "500ms"}}) as bridge:
        async with bridge.session("files") as session:

            async def ended():
                return await bridge.metric("mcp_bridge_sessions", server="files") == 0

            await eventually(ended, within=10)
            response = await session.send(session.call_of("pid", {}))
            assert response.status == 404
