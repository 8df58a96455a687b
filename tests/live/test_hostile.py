"""A server that misbehaves harms only itself."""

import asyncio
import json
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from support import proc
from support.bridge import Bridge
from support.client import answer_to, code_of, error_of, text_of
from support.fakes import echo, hostile
from support.neighbour import Neighbour
from support.waiting import PATIENCE, eventually, remains

SMALL = {"body": "64K", "queue": "64K"}
QUICK = {"timeouts": {"stop": "1s", "call": "5s"}}
IMPATIENT = {"timeouts": {"start": "2s", "stop": "1s"}}
ERROR_WITHIN = 1.0 * PATIENCE  # seconds from a death to the error of its calls
GOOD = [echo("good"), echo("tenant-good", tenant="acme", project="web")]


async def initialize(bridge, instance):
    """The answer to initialize, whatever it is, and whether a session was made."""
    async with bridge.session(instance, opened=False) as session:
        response = await session.send(session.initialize_of(1))
        return answer_to(response, 1), response


@pytest.mark.requirement("NV-07", "E22")
async def test_a_kill_in_mid_call_is_named_at_once_and_the_session_goes_on():
    async with Bridge([echo("files"), *GOOD]) as bridge, Neighbour(bridge):
        async with bridge.session("files") as session:
            pid = int(await session.text("pid"))
            call = asyncio.create_task(session.send(session.call_of("wait", {"tag": "w"}, 1)))
            await eventually(lambda: is_waiting(bridge, "files"))
            os.kill(pid, signal.SIGKILL)
            async with asyncio.timeout(ERROR_WITHIN):
                response = await call
            error = error_of(answer_to(response, 1))
            assert response.status == 200
            assert error["data"]["code"] == "server_crashed"
            assert error["data"]["death"]["signal"] == "SIGKILL"
            assert "SIGKILL" in error["message"]
            assert int(await session.text("pid")) != pid
        assert await bridge.metric("mcp_bridge_crashes_total", server="files") == 1


async def is_waiting(bridge, instance):
    async with bridge.modern(instance) as client:
        return json.loads(await client.text("state"))["waiting"]


async def test_a_kill_between_calls_is_seen_without_a_call():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        pid = int(await session.text("pid"))
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: has_no_pid(bridge, "files", pid), within=ERROR_WITHIN)
        assert await bridge.metric("mcp_bridge_crashes_total", server="files") == 1
        assert int(await session.text("pid")) != pid
        assert int(await session.text("pid")) != pid


async def has_no_pid(bridge, instance, pid):
    return (await bridge.server(instance))["pid"] != pid


@pytest.mark.parametrize("status", [0, 1, 77])
async def test_an_exit_in_mid_call_is_a_crash_whatever_its_status(status):
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        error = error_of(await session.call("crash", {"status": status}))
        assert error["data"]["code"] == "server_crashed"
        assert error["data"]["death"]["status"] == status
        assert await session.text("echo", text="next") == "next"
        assert await bridge.metric("mcp_bridge_crashes_total", server="files") == 1


@pytest.mark.requirement("E22")
async def test_every_call_in_flight_fails_once_and_none_is_replayed():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        async with bridge.modern("files") as modern:
            calls = [
                asyncio.create_task(client.send(client.call_of("wait", {"tag": f"w{n}"}, n)))
                for n in range(5)
                for client in (session, modern)
            ]
            await eventually(lambda: waits(bridge, 10))
            await session.call("kill", {"signal": "SIGSEGV"})
            for number, call in enumerate(calls):
                error = error_of(answer_to(await call, number // 2))
                assert error["data"]["death"]["signal"] == "SIGSEGV"
        state = json.loads(await session.text("state"))
        assert state["seen"]["tools/call"] == 1
        assert await bridge.metric("mcp_bridge_crashes_total", server="files") == 1


async def waits(bridge, number):
    async with bridge.modern("files") as client:
        return len(json.loads(await client.text("state"))["waiting"]) == number


@pytest.mark.requirement("B11")
async def test_a_server_that_exits_at_once_is_one_crash_and_named():
    servers = [hostile("exit_at_once", "bad", "7", **QUICK), *GOOD]
    async with Bridge(servers) as bridge, Neighbour(bridge):
        answer, response = await initialize(bridge, "bad")
        data = error_of(answer)["data"]
        assert data["code"] in {"start_failed", "server_crashed"}
        assert data["death"]["status"] == 7
        assert response.header("Mcp-Session-Id") is None
        assert await bridge.metric("mcp_bridge_crashes_total", server="bad") >= 1


async def test_the_last_words_of_a_server_that_never_started_reach_the_client():
    async with Bridge([hostile("fatal", "bad", **QUICK), *GOOD]) as bridge, Neighbour(bridge):
        answer, _ = await initialize(bridge, "bad")
        data = error_of(answer)["data"]
        assert data["death"]["status"] == 3
        assert any("FATAL: no API key" in line for line in data["death"]["stderr"])


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("mode", ["silent", "junk", "refuse", "nonsense", "stdout_closed", "lsp"])
async def test_a_server_that_does_not_initialize_is_given_up_alone(mode):
    async with (
        Bridge([hostile(mode, "bad", **IMPATIENT), *GOOD]) as bridge,
        Neighbour(bridge) as good,
    ):
        answer, response = await initialize(bridge, "bad")
        assert error_of(answer)["data"]["code"] in {"start_failed", "server_crashed"}
        assert response.header("Mcp-Session-Id") is None
        assert good.calls > 0
        await eventually(lambda: gone(bridge, f"hostile.py\0{mode}"))


def gone(bridge, words):
    """No process of the bridge has these words in its command line."""
    lines = []
    for pid in bridge.processes():
        try:
            lines.append(Path(f"/proc/{pid}/cmdline").read_bytes().decode())
        except OSError:
            continue
    return not any(words in line for line in lines)


async def test_a_command_that_does_not_exist_is_named():
    missing = {"name": "bad", "command": ["/no/such/program"]}
    async with Bridge([missing, *GOOD]) as bridge, Neighbour(bridge):
        answer, response = await initialize(bridge, "bad")
        error = error_of(answer)
        assert response.status in {200, 503}
        assert "/no/such/program" in json.dumps(error)


async def test_a_server_that_closes_its_stdout_is_a_crash_at_once():
    async with Bridge([echo("bad"), *GOOD]) as bridge, Neighbour(bridge):
        async with bridge.session("bad") as session:
            pid = int(await session.text("pid"))
            assert code_of(await session.call("close_stdout")) == "server_crashed"
            assert int(await session.text("pid")) != pid
            await eventually(lambda: not proc.alive(pid))


async def test_a_server_that_closes_its_stdin_is_a_crash_at_once():
    async with Bridge([echo("bad"), *GOOD]) as bridge, Neighbour(bridge):
        async with bridge.session("bad") as session:
            pid = int(await session.text("pid"))
            error = error_of(await session.call("close_stdin"))
            assert error["data"]["code"] == "server_crashed"
            assert error["data"]["death"]["cause"] == "stdin_closed"
            assert int(await session.text("pid")) != pid
            await eventually(lambda: not proc.alive(pid))


@pytest.mark.requirement("H5")
async def test_a_server_that_reads_nothing_more_blocks_only_its_own_callers():
    bad = hostile("deaf", "bad", timeouts={"call": "2s", "stop": "200ms"}, caps=SMALL)
    async with Bridge([bad, *GOOD]) as bridge, Neighbour(bridge):
        async with bridge.modern("bad") as client:
            calls = [
                client.send(client.call_of("echo", {"text": "x" * 60_000}, n)) for n in range(8)
            ]
            for number, response in enumerate(await asyncio.gather(*calls)):
                word = code_of(answer_to(response, number))
                assert word in {"call_timeout", "queue_full", "server_crashed"}


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    ("piece", "size"), [("noise without end ", 90), ("eyJa-", 8000), ("a-", 8000), ("token=", 8000)]
)
async def test_a_flood_on_stderr_harms_nobody_and_is_bounded_in_the_log(piece, size):
    bad = hostile("stderr_for_ever", "bad", piece, str(size), **QUICK)
    async with Bridge([bad, *GOOD]) as bridge, Neighbour(bridge) as good:
        async with bridge.session("bad") as session:
            for number in range(20):
                assert await session.text("echo", text=f"n{number}") == f"n{number}"
            seen = good.calls
            await eventually(lambda: good.calls > seen + 50, within=20)
        assert len(bridge.log()) < 16 << 20


async def test_a_flood_of_notifications_harms_only_who_listens_to_it():
    bad = hostile("notify_for_ever", "bad", **QUICK)
    async with Bridge([bad, *GOOD]) as bridge, Neighbour(bridge) as good:
        sessions = [bridge.session("bad") for _ in range(100)]
        async with AsyncExitStack() as opened:
            for session in sessions:
                await opened.enter_async_context(session)
            stream = await sessions[0].listen()
            assert (await stream.event())["method"] == "notifications/tools/list_changed"
            seen = good.calls
            await eventually(lambda: good.calls > seen + 50, within=20)
            assert await sessions[1].text("echo", text="x") == "x"
            assert await bridge.metric("mcp_bridge_dropped_lines_total", reason="flood") > 0
            await stream.close()


async def test_answers_of_twenty_mebibytes_beside_a_good_server():
    bad = hostile("big", "bad", caps={"line": "32M"})
    async with Bridge([bad, *GOOD]) as bridge, Neighbour(bridge) as good:
        async with bridge.session("bad") as session:
            for _ in range(3):
                assert len(await session.text("echo")) == 20 << 20
        assert good.calls > 10


@pytest.mark.requirement("H4")
async def test_a_server_that_ignores_every_polite_stop_is_ended_in_bounded_time():
    async with Bridge([hostile("ignore_stop", "bad", **QUICK), *GOOD]) as bridge:
        async with Neighbour(bridge), bridge.session("bad") as session:
            pid = int(await session.text("pid"))
            assert (await bridge.command("bad", "stop")).status == 200
            await eventually(lambda: not proc.alive(pid), within=8)
            await bridge.in_state("bad", "stopped")
            assert code_of(await session.call("pid")) == "stopped_by_operator"
            assert await bridge.metric("mcp_bridge_crashes_total", server="bad") == 0
            assert (await bridge.command("bad", "start")).status == 200
            assert int(await session.text("pid")) != pid


@pytest.mark.requirement("H4")
async def test_a_server_that_needs_three_seconds_to_stop_gets_them(tmp_path):
    settings = {"timeouts": {"stop": "10s"}}
    async with Bridge([hostile("flush", "slow", "flushed", **settings)]) as bridge:
        async with bridge.session("slow") as session:
            await session.text("echo", text="x")
            assert (await bridge.command("slow", "stop")).status == 200
            await bridge.in_state("slow", "stopped", within=8)
            kept = bridge.state_dir / "default" / "-" / "slow" / "flushed"
            assert kept.read_text(encoding="utf-8") == "flushed"
            assert await bridge.metric("mcp_bridge_crashes_total", server="slow") == 0


async def test_a_message_that_poisons_a_server_is_a_crash_that_is_named():
    async with Bridge([hostile("poison", "bad", **QUICK), *GOOD]) as bridge, Neighbour(bridge):
        async with bridge.session("bad") as session:
            call = asyncio.create_task(session.send(session.call_of("wait", {}, 1)))
            bystander = asyncio.create_task(session.send(session.call_of("wait", {}, 2)))
            await eventually(lambda: waits_of_poison(bridge, 2))
            await session.notify("notifications/cancelled", {"requestId": 1})
            error = error_of(answer_to(await bystander, 2))
            assert error["data"]["death"]["status"] == 4
            assert "unknown notification" in json.dumps(error["data"])
            await call
            assert await session.text("echo", text="again") == "again"


async def waits_of_poison(bridge, number):
    async with bridge.modern("bad") as client:
        return await client.text("waits") == str(number)


async def test_a_grandchild_that_holds_the_pipes_goes_with_its_server():
    async with Bridge([hostile("grandchild", "bad", **QUICK)]) as bridge:
        async with bridge.session("bad") as session:
            await session.text("pid")
            await eventually(lambda: len(bridge.processes()) >= 2)
            assert (await bridge.command("bad", "stop")).status == 200
            await bridge.in_state("bad", "stopped", within=8)
            await eventually(lambda: not bridge.processes(), within=8)
            await eventually(lambda: not proc.zombies(bridge.pid))


async def test_a_client_that_leaves_in_mid_call_takes_nobody_with_it():
    async with Bridge([echo("files")]) as bridge:
        async with bridge.session("files") as leaving, bridge.session("files") as staying:
            sent = asyncio.create_task(
                leaving.send(leaving.call_of("echo", {"text": "late", "delay": 0.5}, 1))
            )
            stays = asyncio.create_task(
                staying.send(staying.call_of("echo", {"text": "mine", "delay": 0.7}, 1))
            )
            await remains(lambda: not sent.done(), during=0.1)
            sent.cancel()
            assert text_of(answer_to(await stays, 1)) == "mine"


async def test_the_proxys_end_takes_every_server_with_it():
    servers = [hostile("ignore_stop", "a", **QUICK), hostile("grandchild", "b", **QUICK), echo("c")]
    async with Bridge(servers) as bridge:
        for instance in ("a", "b", "c"):
            async with bridge.modern(instance) as client:
                await client.text("pid")
        assert await bridge.stop() == 0
        assert not bridge.processes()
