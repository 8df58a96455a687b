"""Servers that try to stay, to multiply or to take too much."""

import os
import signal

import pytest

from autobot_mcp_bridge.model.death import DeathCause
from support import proc
from support.waiting import eventually, remains


def alive(pids):
    return [pid for pid in pids if proc.alive(pid)]


async def test_children_in_the_group_end_with_a_stop(child):
    parent = await child("sibling")
    pids = await parent.line()

    await parent.stop(5)

    assert alive(pids) == []


async def test_children_in_the_group_end_with_a_crash(child):
    parent = await child("sibling")
    pids = await parent.line()

    os.kill(parent.pid, signal.SIGKILL)
    await parent.ended()

    await eventually(lambda: not alive(pids), what="the end of the group")


@pytest.mark.parametrize("how", ["plain", "bare"])
async def test_daemons_end_with_a_stop(child, how):
    parent = await child("escape", how)
    pids = await parent.line()
    assert len(alive(pids)) == 2

    await parent.stop(5)

    assert alive(pids) == []
    assert proc.zombies(os.getpid()) == []


async def test_daemons_end_when_their_server_ends_by_itself(child):
    parent = await child("escape", "plain", "leave")
    pids = await parent.line()

    death = await parent.ended()

    assert (death.cause, death.asked) == (DeathCause.EXIT, False)
    await eventually(lambda: not alive(pids), what="the end of the daemons")


async def test_daemons_of_another_server_stay(child):
    one, other = (
        await child("escape", "plain", name="one"),
        await child("escape", "plain", name="b"),
    )
    await one.line()
    pids = await other.line()

    await one.stop(5)

    assert len(alive(pids)) == 2
    await remains(lambda: len(alive(pids)) == 2, during=1.2, what="the other's daemons live")


async def test_orphans_that_end_while_their_server_lives_are_reaped(child):
    parent = await child("brood", 20)
    await parent.line()

    await eventually(lambda: proc.children(os.getpid()) == [parent.pid], what="no zombies")
    assert proc.alive(parent.pid)


async def test_a_child_of_somebody_else_is_not_reaped(child):
    """Started as a server would be, in a session of its own, but by us and for us."""
    pid = os.posix_spawn("/bin/true", ["true"], {}, setsid=True)  # noqa: ASYNC221 - over at once
    try:
        parent = await child("brood", 1)
        await parent.line()
        await eventually(lambda: len(proc.children(os.getpid())) == 2, what="the orphan is reaped")
        await remains(lambda: pid in proc.zombies(os.getpid()), during=1.5)
        await parent.stop()
    finally:
        reaped, _ = os.waitpid(pid, 0)  # noqa: ASYNC222 - it has ended
    assert reaped == pid


@pytest.mark.requirement("NV-05")
async def test_a_server_above_its_memory_limit_is_ended_with_that_cause(child):
    hog = await child("hog", 200, limits={"memory": "64M"})

    death = await hog.ended()

    assert (death.cause, death.asked) == (DeathCause.MEMORY, False)
    assert "limits.memory is 64 MiB" in death.detail


async def test_memory_that_children_share_counts_once(child):
    parent = await child("share", 60, 4, limits={"memory": "150M"})
    await parent.line()

    await remains(lambda: proc.alive(parent.pid), during=1.5, what="the server lives")


async def test_5_mb_on_stderr_do_not_block_the_server_and_are_not_all_logged(
    child, logged, runtime
):
    flood = await child("flood", 5_000_000, 50)

    assert await flood.line() == "ready"
    await flood.stop(5)

    dropped = runtime.dropped_lines["child"]
    lines = [line for _, line in logged if line.startswith("x")]
    assert len(lines) + dropped == 100_000
    assert dropped > 90_000
    reports = [line for _, line in logged if "are left out" in line]
    assert sum(int(line.split()[0]) for line in reports) == dropped


async def test_256_kib_of_stderr_without_a_newline_do_not_block_the_server(child, logged):
    flood = await child("flood", 256 << 10, 0)

    assert await flood.line() == "ready"
    await flood.stop(5)

    assert [(name, len(line)) for name, line in logged] == [("child", 4097)]


async def test_secrets_are_taken_out_of_the_log_and_the_last_words(child, logged):
    secret = "correct-horse"
    words = [f"key {secret}", "Authorization: Bearer abc.def", "level info"]

    death = await (await child("last_words", 1, *words, env={"KEY": secret, "L": "info"})).ended()

    assert death.last_words == ("key «redacted»", "Authorization: Bearer «redacted»", "level info")
    assert [line for _, line in logged] == list(death.last_words)
