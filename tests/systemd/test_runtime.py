"""A server's life as a unit, seen by the proxy's own state machine."""

import asyncio
import os
import signal

import pytest

from autobot_mcp_bridge.model.death import DeathCause
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.runtimes.base import News
from support.containers import properties, reaches
from support.installed import SERVERS, instance, spec_of
from support.unit_runtime import keeping
from support.waiting import PATIENCE, eventually

pytestmark = pytest.mark.lab


def echo(name, *words, **keys):
    return spec_of(name, "/usr/bin/python3", "-S", f"{SERVERS}/echo.py", *words, **keys)


async def call(server, tool, **arguments):
    """The text of a tool's answer."""
    channel = await server.ready()
    params = {"name": tool, "arguments": arguments}
    request = {"jsonrpc": "2.0", "method": "tools/call", "params": params}
    answer = await channel.request(request, 10.0 * PATIENCE).result()
    return answer.parsed()["result"]["content"][0]["text"]


async def error_of(doing):
    with pytest.raises(CallError) as caught:
        await doing
    return caught.value


async def test_a_call_starts_the_unit_and_idleness_stops_it(installed):
    spec = echo("idle", timeouts={"idle": "300ms"})
    with instance(installed, spec) as unit:
        async with keeping(installed, [spec]) as keeper:
            server = keeper.instances["idle"]
            assert await call(server, "echo", text="hello") == "hello"
            shown = properties(installed, unit.service, "InvocationID", "ActiveState")
            assert shown == {"InvocationID": server.process.invocation, "ActiveState": "active"}
            await reaches(installed, unit.service, ActiveState="inactive", Result="success")
            await eventually(lambda: server.state is State.SLEEPING)
            assert not keeper.deaths["idle"]
            assert not keeper.news
            assert await call(server, "echo", text="again") == "again"


DEEDS = {
    "an exit": ("crash", {"status": 7}, DeathCause.EXIT, 7),
    "a clean exit": ("crash", {"status": 0}, DeathCause.EXIT, 0),
    "a signal": ("kill", {"signal": "SIGKILL"}, DeathCause.SIGNAL, signal.SIGKILL),
    "a fault": ("kill", {"signal": "SIGSEGV"}, DeathCause.SIGNAL, signal.SIGSEGV),
    "stdout closed": ("close_stdout", {}, DeathCause.STDOUT_CLOSED, None),
    "stdin closed": ("close_stdin", {}, DeathCause.STDIN_CLOSED, None),
}


@pytest.mark.parametrize("deed", DEEDS)
async def test_a_crash_in_mid_call_is_told_with_its_cause_and_the_next_call_starts_anew(
    installed, deed
):
    tool, arguments, cause, status = DEEDS[deed]
    spec = echo("crash")
    with instance(installed, spec):
        async with keeping(installed, [spec]) as keeper:
            server = keeper.instances["crash"]
            first = (await server.ready()).process.invocation
            error = await error_of(call(server, tool, **arguments))
            assert error.cause is Cause.CRASHED
            assert error.data["death"]["cause"] == cause
            (death,) = keeper.deaths["crash"]
            assert (death.cause, death.status) == (cause, status)
            assert await call(server, "echo", text="next") == "next"
            assert server.process.invocation != first
            assert len(keeper.deaths["crash"]) == 1


async def test_the_last_lines_of_stderr_come_with_the_cause_and_hold_no_secret(installed):
    program = "import sys; print('token=hunter2hunter2 no key', file=sys.stderr); sys.exit(3)"
    spec = spec_of("fatal", "/usr/bin/python3", "-S", "-c", program)
    with instance(installed, spec):
        async with keeping(installed, [spec]) as keeper:
            error = await error_of(keeper.instances["fatal"].ready())
            assert error.cause is Cause.START_FAILED
            assert error.data["death"]["status"] == 3
            assert error.data["death"]["stderr"] == ["token=«redacted» no key"]


async def test_a_server_that_takes_too_much_memory_is_ended_for_that(installed):
    eat = "import sys; sys.stdin.readline(); x = bytearray(1 << 30)"
    spec = spec_of("eater", "/usr/bin/python3", "-S", "-c", eat, limits={"memory": "64M"})
    with instance(installed, spec):
        async with keeping(installed, [spec]) as keeper:
            error = await error_of(keeper.instances["eater"].ready())
            assert error.data["death"]["cause"] == DeathCause.MEMORY


async def test_a_program_that_cannot_be_executed_is_named(installed):
    spec = spec_of("missing", "/usr/bin/no-such-program")
    with instance(installed, spec):
        async with keeping(installed, [spec]) as keeper:
            error = await error_of(keeper.instances["missing"].ready())
            assert error.data["death"]["cause"] == DeathCause.EXEC
            assert "/usr/bin/no-such-program" in str(error)


async def test_a_set_up_that_fails_is_one_crash_with_its_step_and_heals_by_itself(installed):
    spec = echo("setup")
    broken = "[Service]\nBindReadOnlyPaths=/no/such/path\n"
    with instance(installed, spec, broken) as unit:
        async with keeping(installed, [spec]) as keeper:
            server = keeper.instances["setup"]
            error = await error_of(server.ready())
            assert error.data["death"]["cause"] == DeathCause.SETUP
            assert error.data["death"]["step"] == "NAMESPACE"
            assert len(keeper.deaths["setup"]) == 1
            folder = f"/etc/systemd/system/{unit.service}.d"
            installed.check("rm", f"{folder}/90-test.conf")
            installed.check("systemctl", "daemon-reload")
            assert await call(server, "echo", text="mended") == "mended"


async def test_a_server_that_never_answers_initialize_is_stopped(installed):
    spec = spec_of("silent", "/bin/sleep", "1000", timeouts={"start": "1s", "stop": "100ms"})
    with instance(installed, spec) as unit:
        async with keeping(installed, [spec]) as keeper:
            error = await error_of(keeper.instances["silent"].ready())
            assert error.data["death"]["cause"] == DeathCause.START_TIMEOUT
            await reaches(installed, unit.service, ActiveState="inactive", within=10)


async def test_an_operators_stop_holds_under_callers_until_a_start_and_is_no_crash(installed):
    spec = echo("stopped")
    with instance(installed, spec) as unit:
        async with keeping(installed, [spec]) as keeper:
            server = keeper.instances["stopped"]
            first = (await server.ready()).process.invocation
            open_call = asyncio.create_task(call(server, "wait", tag="t"))
            await eventually(lambda: server.channel is not None and server.channel.pending)
            await asyncio.to_thread(installed.check, "systemctl", "stop", unit.service)
            assert (await error_of(open_call)).cause is Cause.STOPPED_IN_FLIGHT
            await eventually(lambda: server.state is State.STOPPED)
            for _ in range(20):
                assert (await error_of(server.ready())).cause is Cause.STOPPED
            assert properties(installed, unit.service, "ActiveState") == {"ActiveState": "inactive"}
            assert not keeper.deaths["stopped"]

            await asyncio.to_thread(installed.check, "systemctl", "start", unit.service)
            await eventually(lambda: server.state is State.READY)
            assert await call(server, "echo", text="again") == "again"
            assert server.process.invocation != first


async def test_the_sixth_crash_opens_the_breaker_and_reset_failed_closes_it(installed):
    spec = echo("breaker", breaker={"window": "5m"})
    with instance(installed, spec) as unit:
        async with keeping(installed, [spec]) as keeper:
            server = keeper.instances["breaker"]
            for _ in range(6):
                assert (await error_of(call(server, "crash", status=7))).cause is Cause.CRASHED
            error = await error_of(server.ready())
            assert error.cause is Cause.BREAKER_OPEN
            assert 40 < error.retry_after <= 50
            assert len(keeper.deaths["breaker"]) == 6

            await asyncio.to_thread(installed.check, "systemctl", "reset-failed", unit.service)
            await eventually(lambda: answers(server), within=10)
            assert keeper.news == [("breaker", News.RESET)]


async def test_reset_failed_is_noticed_for_a_unit_that_had_failed_before_the_proxy_came(installed):
    spec = spec_of("before", "/usr/bin/python3", "-S", "-c", "raise SystemExit(7)")
    with instance(installed, spec) as unit:
        unit.start().connection.close()
        await reaches(installed, unit.service, ActiveState="failed")
        async with keeping(installed, [spec]) as keeper:
            await asyncio.to_thread(installed.check, "systemctl", "reset-failed", unit.service)
            await eventually(lambda: keeper.news == [("before", News.RESET)])


async def test_crashes_that_are_spread_out_open_nothing(installed):
    spec = echo("spread", breaker={"window": "500ms"})
    with instance(installed, spec):
        async with keeping(installed, [spec]) as keeper:
            server = keeper.instances["spread"]
            for _ in range(8):
                await error_of(call(server, "crash", status=7))
                await eventually(
                    lambda: not server.breaker.recent(asyncio.get_running_loop().time())
                )
            assert await call(server, "echo", text="x") == "x"
            assert len(keeper.deaths["spread"]) == 8


async def test_a_start_by_hand_warms_the_server(installed):
    spec = echo("warmed")
    with instance(installed, spec) as unit:
        async with keeping(installed, [spec]) as keeper:
            server = keeper.instances["warmed"]
            await asyncio.to_thread(installed.check, "systemctl", "start", unit.service)
            await eventually(lambda: server.state is State.READY)
            shown = properties(installed, unit.service, "InvocationID")
            assert shown["InvocationID"] == server.process.invocation


async def test_a_restart_makes_one_new_process_and_is_no_crash(installed):
    spec = echo("again")
    with instance(installed, spec) as unit:
        async with keeping(installed, [spec]) as keeper:
            server = keeper.instances["again"]
            first = (await server.ready()).process.invocation
            await asyncio.to_thread(installed.check, "systemctl", "restart", unit.service)
            assert await call(server, "echo", text="x") == "x"
            shown = properties(installed, unit.service, "InvocationID")
            assert shown["InvocationID"] == server.process.invocation != first
            assert not keeper.deaths["again"]


async def test_a_masked_unit_is_refused_as_such_and_runs_again_once_unmasked(installed):
    spec = echo("masked")
    with instance(installed, spec) as unit:
        async with keeping(installed, [spec]) as keeper:
            server = keeper.instances["masked"]
            await asyncio.to_thread(installed.check, "systemctl", "mask", "--runtime", unit.service)
            await eventually(lambda: masked(server))
            assert not keeper.deaths["masked"]
            await asyncio.to_thread(
                installed.check, "systemctl", "unmask", "--runtime", unit.service
            )
            await eventually(lambda: answers(server), within=10)


async def masked(server):
    try:
        await server.ready()
    except CallError as error:
        return error.cause is Cause.MASKED
    return False


async def answers(server):
    try:
        return await call(server, "echo", text="x") == "x"
    except CallError:
        return False


async def test_a_stubborn_server_is_ended_with_all_that_it_started(installed):
    program = (
        "import os, signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"sys.path[0] = {SERVERS!r}; "
        "os.fork() or (os.setsid(), signal.pause()); "
        "import hostile; hostile.ignore_stop()"
    )
    spec = spec_of("stubborn", "/usr/bin/python3", "-S", "-c", program, timeouts={"stop": "100ms"})
    with instance(installed, spec) as unit:
        async with keeping(installed, [spec]) as keeper:
            server = keeper.instances["stubborn"]
            pid = (await server.ready()).process.pid
            server.stop()
            await eventually(lambda: server.state is State.STOPPED, within=20)
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
            assert properties(installed, unit.service, "TasksCurrent") == {
                "TasksCurrent": "[not set]"
            }
            assert not keeper.deaths["stubborn"]
            assert (News.STOPPED, "stubborn") not in keeper.news
