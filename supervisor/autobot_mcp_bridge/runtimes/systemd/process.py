"""One invocation of a server's unit; its end is seen through a pidfd, its cause told by systemd."""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from autobot_mcp_bridge.model.death import Death, DeathCause
from autobot_mcp_bridge.model.unit_result import UnitResult
from autobot_mcp_bridge.runtimes.systemd.ends import Ends
from autobot_mcp_bridge.runtimes.systemd.handover import Handed
from autobot_mcp_bridge.runtimes.systemd.kept import KeptPipes
from autobot_mcp_bridge.supervision.bus import BusError
from autobot_mcp_bridge.supervision.watcher import Watcher

# TimeoutStopSec= of the unit, and what SIGKILL and ExecStopPost= take after it.
STOP_WITHIN = 5.0 + 3.0

log = logging.getLogger(__name__)


class UnitProcess:
    """Implements `Process` of runtimes/base.py."""

    def __init__(
        self,
        handed: Handed,
        instance: str,
        watcher: Watcher,
        ends: Ends,
        redact: Callable[[str], str],
        kept: KeptPipes,
        view: str,
    ) -> None:
        self.invocation = handed.invocation
        self.pid = handed.pid
        self.stdin_fd = handed.stdin_fd
        self.stdout_fd = handed.stdout_fd
        self.redact = redact
        self._handed = handed
        self._kept = kept
        self._view = view
        self._instance = instance
        self._watcher = watcher
        self._ends = ends
        self._asked = False
        self._gone = asyncio.Event()
        self._conclusion: asyncio.Task[Death] | None = None
        self._stopping: asyncio.Task[Death] | None = None
        try:
            self._pidfd = os.pidfd_open(handed.pid)
        except ProcessLookupError:
            self._kept.release(instance, self.invocation)
            self._gone.set()
        else:
            asyncio.get_running_loop().add_reader(self._pidfd, self._exited)

    def _exited(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._kept.release(self._instance, self.invocation)
        self._gone.set()

    async def ended(self) -> Death:
        await self._gone.wait()
        if self._conclusion is None:
            self._conclusion = asyncio.create_task(self._conclude())
        return await asyncio.shield(self._conclusion)

    def has_exited(self) -> bool:
        return self._gone.is_set()

    async def stop(self, grace: float) -> Death:
        if self._stopping is None:
            self._kept.release(self._instance, self.invocation)
            self._asked = self._asked or not self._gone.is_set()
            self._stopping = asyncio.create_task(self._stop(grace), name=f"stop {self.invocation}")
        return await asyncio.shield(self._stopping)

    def greeted(self, hello: dict[str, Any]) -> None:
        self._kept.greeted(self._instance, self._handed, hello, self._view)

    def tear(self, *, torn: bool) -> None:
        self._kept.torn(self._instance, self.invocation, torn=torn)

    def leave(self, rest: bytes | None) -> None:
        self._kept.rest(self._instance, self._handed, rest)

    async def _stop(self, grace: float) -> Death:
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._gone.wait()
        if not self._gone.is_set():
            try:
                # Of this invocation only: whatever runs by then is not ours to stop.
                await self._watcher.stop(self._instance, self.invocation)
            except BusError as error:
                said = {"MCP_INSTANCE": self._instance}
                log.warning("%s: its unit cannot be stopped: %s", self._instance, error, extra=said)
        try:
            async with asyncio.timeout(STOP_WITHIN):
                death = await self.ended()
                await self._ends.over(self.invocation)  # what it has started is gone, too
                return death
        except TimeoutError:
            if self._conclusion is not None and self._conclusion.done():
                return self._conclusion.result()
            detail = f"process {self.pid} is still there"
            return Death(DeathCause.TIMEOUT, detail=detail, asked=self._asked)

    async def _conclude(self) -> Death:
        words = await self._ends.words(self._instance, self.invocation)
        # Where many units end at once, systemd tells of their ends late, but of their jobs first.
        asked = (
            self._asked
            or self._ends.asked(self.invocation)
            or self._watcher.is_asked_to_end(self._instance, self.invocation)
        )
        if words is not None:
            return words.death(self.redact, began=True, asked=asked)
        state = self._watcher.state(self._instance)
        if state is not None and state.invocation == self.invocation:
            result = UnitResult(state.result, state.main_code, state.main_status)
            return result.death(began=True, asked=asked)
        return Death(DeathCause.UNKNOWN, asked=asked)
