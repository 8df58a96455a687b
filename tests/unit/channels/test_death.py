"""What the end of a pipe means: the process is gone, or it lives on and can no longer talk."""

import asyncio
from types import SimpleNamespace

import pytest

from autobot_mcp_bridge.channels import ends
from autobot_mcp_bridge.channels.ends import death_of
from autobot_mcp_bridge.model.death import Death, DeathCause

KILLED = Death(DeathCause.SIGNAL, 9)


class Process:
    """One whose cause is known only when it is told, after the time that a death may take."""

    def __init__(self, *, gone):
        self.known = asyncio.Event()
        self._gone = gone

    def has_exited(self):
        asyncio.get_running_loop().call_soon(self.known.set)
        return self._gone

    async def ended(self):
        await self.known.wait()
        return KILLED


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(ends, "DEATH_WAIT", 0.01)


def channel_of(process, *, ended=True):
    channel = SimpleNamespace(process=process, ended=asyncio.Event())
    if ended:
        channel.ended.set()
    return channel


async def test_a_process_that_is_gone_has_its_own_cause_however_late_that_comes():
    assert await death_of(channel_of(Process(gone=True))) == KILLED


async def test_one_that_lives_on_has_closed_the_pipe_that_ended():
    mute = await death_of(channel_of(Process(gone=False)))
    deaf = await death_of(channel_of(Process(gone=False), ended=False))
    assert (mute.cause, deaf.cause) == (DeathCause.STDOUT_CLOSED, DeathCause.STDIN_CLOSED)
