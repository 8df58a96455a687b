"""How a process ended, once one of its pipes has."""

import asyncio

from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.model.death import Death, DeathCause

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
