"""Crashes stop the restarts, and an operator or a probe lets them go on (NV-07; BUGS A8)."""

import asyncio

import pytest

from support.bridge import Bridge
from support.client import answer_to, code_of, error_of
from support.fakes import echo, hostile
from support.waiting import PATIENCE, eventually, remains

AT_ONCE = 2.0 * PATIENCE  # seconds for a refusal
STARTS = ("--starts", "starts")


def starts(bridge, name="files"):
    path = bridge.state_dir / "default" / "-" / name / "starts"
    return len(path.read_text(encoding="utf-8").split()) if path.exists() else 0


async def crash(client, times):
    for _ in range(times):
        assert code_of(await client.call("crash")) == "server_crashed"


async def assert_open(bridge, client, instance="files"):
    """503 at once, with when to try again and why."""
    response = await client.send(client.call_of("pid", {}, 5), within=AT_ONCE)
    assert response.status == 503
    assert int(response.header("Retry-After") or 0) >= 1
    error = error_of(answer_to(response, 5))
    assert error["data"]["code"] == "breaker_open"
    assert error["data"]["death"]["cause"] == "exit"
    assert await bridge.metric("mcp_bridge_breaker_open", server=instance) == 1


@pytest.mark.requirement("NV-07")
@pytest.mark.parametrize("era", ["session", "modern"])
async def test_the_sixth_crash_of_a_minute_opens_the_breaker(era):
    async with Bridge([echo("files", *STARTS), echo("good")]) as bridge:
        async with getattr(bridge, era)("files") as client:
            await crash(client, 5)
            await client.text("echo", text="the fifth is tolerated")
            assert await bridge.metric("mcp_bridge_breaker_open", server="files") == 0
            await crash(client, 1)
            await bridge.in_state("files", "broken")
            before = starts(bridge)
            for _ in range(5):
                await assert_open(bridge, client)
            assert starts(bridge) == before == 6
            assert await bridge.metric("mcp_bridge_crashes_total", server="files") == 6
        async with bridge.modern("good") as good:
            await good.text("echo", text="not my breaker")


async def test_a_server_that_always_fails_is_started_six_times_and_no_more():
    async with Bridge([hostile("exit_at_once", "bad")]) as bridge:
        words = []
        for _ in range(10):
            async with bridge.session("bad", opened=False) as session:
                response = await session.send(session.initialize_of(1))
                words.append(code_of(answer_to(response, 1)))
        assert words == ["start_failed"] * 6 + ["breaker_open"] * 4
        # One more process than starts: the first one may have ended by the question for its era.
        assert await bridge.metric("mcp_bridge_starts_total", server="bad") == 7
        assert (await bridge.server("bad"))["crashes"] >= 6


async def test_parallel_callers_of_a_failing_server_share_one_start():
    async with Bridge([hostile("exit_at_once", "bad")]) as bridge:
        async with bridge.modern("bad") as client:
            calls = [client.call("echo") for _ in range(20)]
            assert {code_of(answer) for answer in await asyncio.gather(*calls)} == {"start_failed"}
        assert await bridge.metric("mcp_bridge_crashes_total", server="bad") <= 2


async def test_a_reset_by_the_operator_lets_it_run_again():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        await crash(session, 6)
        await bridge.in_state("files", "broken")
        assert (await bridge.command("files", "reset")).status == 200
        await eventually(lambda: is_not_broken(bridge))
        assert await session.text("echo", text="again") == "again"
        assert await bridge.metric("mcp_bridge_breaker_open", server="files") == 0


async def is_not_broken(bridge):
    return await bridge.state("files") != "broken"


async def test_after_the_wait_one_probe_that_answers_closes_it():
    settings = {"breaker": {"crashes": 1, "window": "1s"}}
    async with Bridge([echo("files", **settings)]) as bridge, bridge.session("files") as session:
        await crash(session, 2)
        await assert_open(bridge, session)

        async def answered():
            return "result" in await session.call("echo", {"text": "x"})

        await eventually(answered)
        assert await bridge.metric("mcp_bridge_breaker_open", server="files") == 0


async def test_a_probe_that_crashes_opens_it_again():
    settings = {"breaker": {"crashes": 1, "window": "1s"}}
    async with Bridge([echo("files", **settings)]) as bridge, bridge.session("files") as session:
        await crash(session, 2)

        async def probed():
            return code_of(await session.call("crash")) == "server_crashed"

        await eventually(probed)
        await assert_open(bridge, session)


async def test_without_a_probe_only_a_reset_closes_it():
    settings = {"breaker": {"crashes": 1, "window": "300ms", "probe": False}}
    async with Bridge([echo("files", **settings)]) as bridge, bridge.session("files") as session:
        await crash(session, 2)

        async def refused():
            return code_of(await session.call("echo")) == "breaker_open"

        await remains(refused, during=1.0)
        await bridge.command("files", "reset")
        assert await session.text("echo", text="x") == "x"


async def test_stops_exits_while_idle_and_errors_of_tools_are_no_crashes():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        for _ in range(8):
            await session.call("fail", {"code": -1, "message": "no"})
            assert (await bridge.command("files", "stop")).status == 200
            await bridge.in_state("files", "stopped")
            assert (await bridge.command("files", "start")).status == 200
        assert await session.text("echo", text="x") == "x"
        assert await bridge.metric("mcp_bridge_crashes_total", server="files") == 0


async def test_stopping_one_server_does_not_touch_one_of_a_similar_name():
    async with Bridge([echo("git"), echo("git-admin")]) as bridge:
        async with bridge.session("git-admin") as session:
            pid = await session.text("pid")
            assert (await bridge.command("git", "stop")).status == 200
            await bridge.in_state("git", "stopped")
            assert await session.text("pid") == pid
            assert (await bridge.command("gi", "stop")).status == 404


async def test_starts_and_stops_in_quick_succession_end_as_the_last_one_said():
    async with Bridge([echo("files", timeouts={"stop": "1s"})]) as bridge:
        for _ in range(20):
            await bridge.command("files", "start")
            await bridge.command("files", "stop")
        await bridge.in_state("files", "stopped")
        await eventually(lambda: not bridge.processes())
        await bridge.command("files", "start")
        await bridge.in_state("files", "ready")
        await eventually(lambda: len(bridge.processes()) == 1)
