"""The egress proxy as a whole: what it reads and writes, from its start to its end."""

import asyncio
import logging
import os
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.watch import mark
from autobot_mcp_bridge.egress import allowed, counts
from autobot_mcp_bridge.egress.gate import Gate
from autobot_mcp_bridge.egress.limits import Limits
from autobot_mcp_bridge.egress.listeners import Listeners, hands_socket
from autobot_mcp_bridge.egress.resolver import Resolver

# Seconds between two looks at egress.json; the counts are written as often, if they have changed.
POLL = 0.5
HANDS = "hands.sock"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Files:
    """Where things lie.

    Attributes:
        allowed: egress.json, which apply writes.
        directory: this program's own, below /run.
    """

    allowed: Path
    directory: Path


async def run(files: Files, limits: Limits | None = None) -> None:
    """Carry connections until SIGTERM or SIGINT.

    Raises:
        OSError: the directory cannot be written to.
    """
    limits = limits or Limits()
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    resolver = Resolver(limits)
    known = await asyncio.to_thread(counts.load, files.directory / counts.FILE)
    for each in known.values():
        each.open = 0
    gate = Gate(limits, resolver, known)
    keeper = _Keeper(files, gate)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    with hands_socket(files.directory / HANDS) as hands:
        try:
            async with asyncio.TaskGroup() as tasks:
                await keeper.look()
                listeners = Listeners(gate.serve, tasks)
                loop.add_reader(hands, listeners.take, hands)
                looking = tasks.create_task(keeper.keep(), name="look")
                _notify("READY=1")
                await ended.wait()
                _notify("STOPPING=1")
                loop.remove_reader(hands)
                looking.cancel()
                listeners.close()
        finally:
            resolver.close()
            await keeper.look()


class _Keeper:
    """Keeps the gate and its files the same."""

    def __init__(self, files: Files, gate: Gate) -> None:
        self._files = files
        self._gate = gate
        self._seen = ""

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(POLL)
            await self.look()
            _notify("WATCHDOG=1")

    async def look(self) -> None:
        seen = await asyncio.to_thread(mark, self._files.allowed)
        if seen != self._seen:
            self._seen = seen
            try:
                self._gate.allow(await asyncio.to_thread(allowed.read, self._files.allowed))
            except DataError as error:
                log.warning("what was allowed before stays in force: %s", error)
        if self._gate.changed:
            self._gate.changed = False
            data = counts.dumps(self._gate.counts)
            try:
                await asyncio.to_thread(counts.write, self._files.directory / counts.FILE, data)
            except OSError as error:
                log.warning("the counts cannot be written: %s", error.strerror)


def _notify(text: str) -> None:
    """sd_notify(3); without systemd nothing."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    address = "\0" + address[1:] if address[0] == "@" else address
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    with made, suppress(OSError):
        made.sendto(text.encode(), address)
