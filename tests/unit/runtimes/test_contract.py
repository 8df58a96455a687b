"""What every runtime must keep: the contract of runtimes/base.py, shown with real processes."""

import asyncio
import os
import signal

import pytest

from autobot_mcp_bridge.model.death import DeathCause
from autobot_mcp_bridge.runtimes.base import Command, StartError
from support import proc
from support.waiting import eventually

from .conftest import command, spec


async def test_what_is_written_to_stdin_comes_back_on_stdout(child):
    echo = await child("echo")

    echo.write(b'"hello"\n')

    assert await echo.line() == "hello"


async def test_an_exit_is_told_with_its_status(child):
    death = await (await child("leave", 7)).ended()

    assert (death.cause, death.status, death.asked) == (DeathCause.EXIT, 7, False)


async def test_a_signal_is_told_by_its_number(child):
    death = await (await child("signalled", int(signal.SIGSEGV))).ended()

    assert (death.cause, death.status) == (DeathCause.SIGNAL, signal.SIGSEGV)


async def test_a_kill_from_outside_is_told_and_was_not_asked_for(child):
    echo = await child("echo")

    os.kill(echo.pid, signal.SIGKILL)
    death = await echo.ended()

    assert (death.cause, death.status, death.asked) == (DeathCause.SIGNAL, signal.SIGKILL, False)


async def test_the_end_can_be_awaited_many_times_and_after_a_cancelled_wait(child):
    echo = await child("echo")
    waiting = asyncio.create_task(echo.process.ended())
    await asyncio.wait([waiting], timeout=0)
    waiting.cancel()
    await asyncio.wait([waiting])

    assert proc.alive(echo.pid)
    echo.close_stdin()
    assert await echo.ended() is await echo.ended()


async def test_a_server_that_ends_with_its_stdin_is_not_signalled(child):
    death = await (await child("echo")).stop(grace=20)

    # `asked` is not certain here: it may end between the close of its stdin and the stop.
    assert (death.cause, death.status) == (DeathCause.EXIT, 0)


async def test_a_server_that_ignores_the_end_of_stdin_gets_sigterm(child):
    silent = await child("sibling")
    await silent.line()

    async with asyncio.timeout(20):
        death = await silent.process.stop(0.05)  # stdin stays open: it cannot know

    assert (death.cause, death.status, death.asked) == (DeathCause.SIGNAL, signal.SIGTERM, True)


async def test_a_server_that_ignores_sigterm_as_well_gets_sigkill(child):
    stubborn = await child("stubborn")
    await stubborn.line()

    death = await stubborn.stop()

    assert (death.cause, death.status, death.asked) == (DeathCause.SIGNAL, signal.SIGKILL, True)
    assert not proc.alive(stubborn.pid)


async def test_a_stop_with_less_patience_overtakes_one_with_more(child):
    stubborn = await child("stubborn")
    await stubborn.line()
    patient = asyncio.create_task(stubborn.process.stop(3600))

    death = await stubborn.stop()

    assert await patient == death


async def test_a_cancelled_stop_goes_on(child):
    stubborn = await child("stubborn")
    await stubborn.line()
    stopping = asyncio.create_task(stubborn.process.stop(0))
    await asyncio.wait([stopping], timeout=0)
    stopping.cancel()

    death = await stubborn.ended()

    assert death.asked


async def test_a_stop_after_the_end_tells_the_same_death(child):
    ended = await child("leave", 3)
    death = await ended.ended()

    assert await ended.stop() == death
    assert not death.asked


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["/nowhere/at/all"], "No such file"),
        (["/etc/passwd"], "Permission denied"),
        (["child"], "not an absolute path"),
    ],
)
async def test_what_cannot_be_executed_is_a_start_error_with_the_reason(runtime, argv, why):
    with pytest.raises(StartError) as caught:
        await runtime.start(spec(), Command(argv))

    assert caught.value.death.cause is DeathCause.EXEC
    assert why in caught.value.death.detail


async def test_last_words_are_the_last_eight_lines(child):
    death = await (await child("last_words", 3, *(f"line {n}" for n in range(20)))).ended()

    assert death.last_words == tuple(f"line {n}" for n in range(12, 20))


async def test_every_start_has_its_own_invocation(child):
    one, other = await child("echo", name="one"), await child("echo", name="other")

    assert one.process.invocation != other.process.invocation
    assert len(one.process.invocation) == 32


async def test_a_cancelled_start_leaves_no_process(runtime):
    mark = "cancelled-start"
    wanted = spec(env={"MARK": mark})
    for turns in range(0, 60, 6):
        start = asyncio.create_task(runtime.start(wanted, command("stubborn")))
        for _ in range(turns):
            await asyncio.wait([start], timeout=0.002)
        start.cancel()
        await asyncio.wait([start])
        if not start.cancelled():
            process = start.result()
            os.close(process.stdin_fd)
            os.close(process.stdout_fd)
            await process.stop(0)

    # A start that got as far as exec ends within the grace of SIGTERM and SIGKILL.
    await eventually(lambda: not proc.with_environment(mark), what="no process", within=30)


async def test_close_ends_what_is_still_there(runtime, child):
    stubborn = [await child("stubborn", name=f"s{n}") for n in range(3)]
    for each in stubborn:
        await each.line()

    async with asyncio.timeout(20):
        await runtime.close()

    assert [each.pid for each in stubborn if proc.alive(each.pid)] == []
    with pytest.raises(StartError):
        await runtime.start(spec(), command("echo"))
