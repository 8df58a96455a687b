"""The program as a whole: from its start to its end."""

import asyncio
import signal
import sys
from typing import Any

from autobot_mcp_bridge.upstream.client import Client
from autobot_mcp_bridge.upstream.endings import EndError, FailedError
from autobot_mcp_bridge.upstream.relay import Relay
from autobot_mcp_bridge.upstream.settings import Settings
from autobot_mcp_bridge.upstream.stdio import Lines, Output, tell

FINISH_WITHIN = 2.0  # seconds for the client to read the last of it


async def run(settings: Settings) -> int:
    """Carry messages until stdin ends, SIGTERM or SIGINT; the exit status."""
    output, lines = Output(), Lines(settings.most)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        await lines.open(sys.stdin.buffer)
        await output.open(sys.stdout.buffer)
        async with Client(settings) as client:
            relay = Relay(settings, client, output)
            try:
                await _until_end(relay, lines, output, stopped)
            except EndError as why:
                if settings.attended:
                    await relay.fail_open(str(why))
                raise
            finally:
                await relay.close()
    except FailedError as failed:
        return await _end(output, EndError(failed.status, failed.text))
    except EndError as why:
        return await _end(output, why)
    await output.finish(FINISH_WITHIN)
    return 0


async def _end(output: Output, why: EndError) -> int:
    await output.finish(FINISH_WITHIN)
    tell(str(why))
    return why.status


async def _until_end(relay: Relay, lines: Lines, output: Output, stopped: asyncio.Event) -> None:
    """Take lines until there are no more.

    Raises:
        EndError: the upstream, or what comes in, leaves no other way.
    """

    async def read() -> None:
        while (line := await lines.next()) is not None:
            await relay.take(line)

    reading = asyncio.create_task(read())
    others = [asyncio.create_task(each.wait()) for each in (stopped, output.closed)]
    ends: set[asyncio.Future[Any]] = {reading, relay.ended, *others}
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if relay.ended.done():
            raise relay.ended.result()
        if reading.done():
            reading.result()
    finally:
        for task in (reading, *others):
            task.cancel()
        await asyncio.gather(reading, *others, return_exceptions=True)
