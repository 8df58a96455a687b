"""How a process ended, once one of its pipes has, and what its callers are told of it."""

import asyncio

from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.model.death import Death, DeathCause
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.supervision.breaker import Breaker, BreakerState

# How long the end of stdout waits for the end of the process, which tells the cause.
DEATH_WAIT = 0.5


async def death_of(channel: Channel) -> Death:
    """The truth about the end of a pipe: the process is gone, or lives on mute or deaf (A19)."""
    try:
        async with asyncio.timeout(DEATH_WAIT):
            await channel.ended.wait()  # what it has said before counts
            return await channel.process.ended()
    except TimeoutError:
        if channel.process.has_exited():  # on a busy machine the cause comes later than the end
            return await channel.process.ended()
        mute = channel.ended.is_set()
        return Death(DeathCause.STDOUT_CLOSED if mute else DeathCause.STDIN_CLOSED)


def too_late(channel: Channel, timeout: float) -> Death:
    """It has not said its first words within `timeout` seconds; what it said instead may tell why."""
    detail = f"{timeout:g} s"
    if channel.noise:
        noise = channel.process.redact(channel.noise)
        detail += f"; its stdout says {noise!r}, which is not JSON-RPC"
    return Death(DeathCause.START_TIMEOUT, detail=detail)


def crashed(death: Death, *, ready: bool) -> CallError:
    """What the calls get that were open, or waited for the start."""
    cause = Cause.CRASHED if ready else Cause.START_FAILED
    during = "during the call" if ready else "at its start"
    text = f"the server ended {during}: {death.describe()}"
    return CallError(cause, text, data={"death": death.as_data()})


def resting(spec: ServerSpec, breaker: Breaker, *, stopped: bool) -> State:
    """The state of a server without a process."""
    if not spec.enabled:
        return State.DISABLED
    if stopped:
        return State.STOPPED
    return State.BROKEN if breaker.state is BreakerState.OPEN else State.SLEEPING


def broken(breaker: Breaker, death: Death | None, now: float) -> CallError:
    """What a call gets that would start a server which has crashed too often."""
    last = f"; last: {death.describe()}" if death is not None else ""
    return CallError(
        Cause.BREAKER_OPEN,
        f"the server crashed {breaker.recent(now)} times within "
        f"{breaker.settings.window:g} s{last}",
        data={"death": death.as_data()} if death is not None else None,
        retry_after=breaker.retry_after(now),
    )
