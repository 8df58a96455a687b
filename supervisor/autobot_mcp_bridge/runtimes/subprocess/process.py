"""One running server: its end is observed once, through a pidfd, and told to whoever asks."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from autobot_mcp_bridge.model.death import Death, DeathCause
from autobot_mcp_bridge.runtimes.subprocess.kin import Kin, Mains
from autobot_mcp_bridge.runtimes.subprocess.spawn import Spawned
from autobot_mcp_bridge.runtimes.subprocess.stderr import Stderr

TERM_GRACE = 2.0  # seconds from SIGTERM to SIGKILL
# What a process that got SIGKILL may need; only one that hangs in the kernel needs more.
KILL_GRACE = 2.0
STDERR_GRACE = 0.1  # seconds after the exit for the last lines to be read


class ServerProcess:
    """The main process of one invocation; implements `Process` of runtimes/base.py."""

    def __init__(
        self,
        spawned: Spawned,
        mains: Mains,
        stderr: Stderr,
        redact: Callable[[str], str],
        clear: Callable[[Kin], Awaitable[None]],
    ) -> None:
        self.invocation = spawned.order.kin.invocation
        self.pid = spawned.pid
        self.stdin_fd = spawned.stdin_fd
        self.stdout_fd = spawned.stdout_fd
        self.redact = redact
        self._pidfd = spawned.pidfd
        self._kin = spawned.order.kin
        self._mains = mains
        self._stderr = stderr
        self._clear = clear
        self._asked = False
        self._excess = ""
        self._reaped = False
        self._loop = asyncio.get_running_loop()
        self._death: asyncio.Future[Death] = self._loop.create_future()
        self._conclusion: asyncio.Task[None] | None = None
        self._cleared = asyncio.Event()
        self._stops: set[asyncio.Task[Death]] = set()
        self._loop.add_reader(self._pidfd, self._exited)

    def __repr__(self) -> str:
        return f"<ServerProcess {self.pid} {self.invocation}>"

    async def ended(self) -> Death:
        return await asyncio.shield(self._death)

    def greeted(self, hello: dict[str, Any]) -> None: ...

    def tear(self, *, torn: bool) -> None: ...

    def leave(self, rest: bytes | None) -> None: ...

    async def stop(self, grace: float) -> Death:
        return await asyncio.shield(self.end(grace))

    def end(self, grace: float = 0) -> asyncio.Task[Death]:
        """As `stop`, without waiting: a caller that is cancelled cannot leave it half stopped."""
        if not self.has_exited():
            self._asked = True
        task = asyncio.create_task(self._stop(grace), name=f"stop {self.invocation}")
        self._stops.add(task)
        task.add_done_callback(self._stops.discard)
        return task

    def exceed(self, figures: str) -> None:
        """End it for using too much memory."""
        if not self._reaped and not self._excess:
            self._excess = figures
            self._signal(signal.SIGKILL)

    async def _stop(self, grace: float) -> Death:
        steps = ((grace, signal.SIGTERM), (TERM_GRACE, signal.SIGKILL), (KILL_GRACE, None))
        for seconds, number in steps:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._cleared.wait()
                    return self._death.result()
            if number is not None:
                self._signal(number)
        if self._death.done():
            return self._death.result()
        return Death(
            DeathCause.SIGNAL,
            signal.SIGKILL,
            detail=f"process {self.pid} is still there {KILL_GRACE:.0f} s after it",
            asked=self._asked,
        )

    def _signal(self, number: signal.Signals) -> None:
        # Until it is reaped the main process keeps its pid, and with it the group's number.
        if not self._reaped:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def has_exited(self) -> bool:
        if self._reaped:
            return True
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PIDFD, self._pidfd, flags) is not None
        except ChildProcessError:
            return True

    def _exited(self) -> None:
        if not self.has_exited():
            return
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._signal(signal.SIGKILL)
        code = self._reap()
        self._conclusion = asyncio.create_task(self._conclude(code), name=f"end {self.invocation}")

    def _reap(self) -> int | None:
        """The exit code, negative for a signal; None if a stranger's wait() took it."""
        try:
            _, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            code = None
        else:
            code = os.waitstatus_to_exitcode(status)
        self._reaped = True
        self._kin.ended = True
        del self._mains.pids[self.invocation]
        return code

    async def _conclude(self, code: int | None) -> None:
        clearing = asyncio.ensure_future(self._clear(self._kin))
        try:
            last_words = await self._stderr.finish(STDERR_GRACE)
            self._death.set_result(self._told(code, last_words))
            await clearing
        finally:
            self._cleared.set()

    def _told(self, code: int | None, last_words: tuple[str, ...]) -> Death:
        if code is None:
            detail = "something else in the proxy has waited for it"
            return Death(DeathCause.EXIT, None, detail, last_words, self._asked)
        if self._excess and code == -signal.SIGKILL:
            return Death(DeathCause.MEMORY, None, self._excess, last_words, self._asked)
        if code < 0:
            return Death(DeathCause.SIGNAL, -code, "", last_words, self._asked)
        return Death(DeathCause.EXIT, code, "", last_words, self._asked)
