"""From the event loop into the file, in order, without holding anybody up.

Lines are sealed in the loop, which is where their order is decided, and written by one thread of
the writer's own, as many together as have come meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Protocol, Self

from autobot_mcp_bridge.config.errors import UnavailableError
from autobot_mcp_bridge.policy.audit.files import AuditFile

# Lines wait so many seconds for company, and longer if others have just been written: with the
# thread woken every 5 ms calls cost more CPU than with every 50 ms (measured, on a busy host).
TOGETHER = 0.005
APART = 0.05
# Bytes, and records before the file could be opened, that wait for the disk; what is more is lost,
# and counted.
MAX_WAITING = 8 << 20
MAX_EARLY = 4096
# A disk that is full is tried again after so many seconds.
RETRY = 1.0
# At the end, for all that waits to be written.
CLOSE_WITHIN = 5.0

log = logging.getLogger(__name__)


class Tells(Protocol):
    """Makes the records that are of no call, and hears of what is written."""

    def greeting(self, file: AuditFile) -> dict[str, Any]:
        """What a chain that is begun, or gone on with, says first."""
        ...

    def gap(self, missing: int) -> dict[str, Any]:
        """That so many records are not in it."""
        ...

    def written(self, lines: int, seq: int) -> None:
        """So many more are in the file; the number of the last."""
        ...


class Writer:
    """Keeps one chain.

    Args:
        file: where it is written; this is the only one who does.
        tells: what the chain says of itself.

    Attributes:
        lost: records for which there was no room.
        failing: why nothing can be written now, or "".
    """

    def __init__(self, file: AuditFile, tells: Tells) -> None:
        self._file = file
        self._tells = tells
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="audit")
        self._early: list[dict[str, Any]] = []
        self._lines: list[bytes] = []
        self._writing: list[bytes] = []
        self._waiting = 0  # bytes of both
        self._timer: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_open = False
        self._last = float("-inf")  # when lines were written, by the loop's clock
        self._told_lost = 0
        self.lost = 0
        self.failing = ""

    async def start(self, *, required: bool) -> Self:
        """Open the file; where that fails it is tried again, unless each line is required.

        Raises:
            UnavailableError: it cannot be written, and must be; or another process does.
        """
        self._loop = asyncio.get_running_loop()
        try:
            await self._loop.run_in_executor(self._thread, self._file.open)
        except OSError as error:
            if required:
                text = f"{error.filename or 'audit.d'}: {error.strerror}; audit.required is true"
                raise UnavailableError(text) from None
            self._fails(error)
            self._timer = self._loop.call_later(RETRY, self._open_again)
        else:
            self._opened()
        return self

    # ---- from whoever records ----

    @property
    def can_write(self) -> bool:
        """Whether a record of now would come into the file soon."""
        return not self.failing and self._waiting < MAX_WAITING // 2

    def append(self, record: dict[str, Any]) -> bytes | None:
        """Take one record; its line, or None if it waits for the file, or is lost."""
        if not self._is_open:
            if len(self._early) < MAX_EARLY:
                self._early.append(record)
            else:
                self.lost += 1
            return None
        if self._waiting >= MAX_WAITING:
            self.lost += 1
            return None
        line = self._file.chain.seal(record)
        self._lines.append(line)
        self._waiting += len(line)
        self._schedule()
        return line

    # ---- to the file ----

    def _schedule(self) -> None:
        if self._timer is None and not self._writing:
            self._idle.clear()
            now = self._loop.time()
            self._timer = self._loop.call_at(max(now + TOGETHER, self._last + APART), self._flush)

    def _open_again(self) -> None:
        self._timer = None
        self._submit(self._file.open, self._tried)

    def _tried(self, future: "asyncio.Future[None]") -> None:
        error = future.exception()
        if error is None:
            self._opened()
            return
        self._fails(error)
        self._timer = self._loop.call_later(RETRY, self._open_again)

    def _opened(self) -> None:
        self._is_open = True
        self.append(self._tells.greeting(self._file))
        early, self._early = self._early, []
        for record in early:
            self.append(record)
        self._recovered()

    def _flush(self) -> None:
        self._timer = None
        self._last = self._loop.time()
        lines = self._writing = self._writing + self._lines
        self._lines = []
        self._submit(lambda: self._file.write(lines), self._wrote)

    def _wrote(self, future: "asyncio.Future[int]") -> None:
        error = future.exception() or self._file.failure
        done = 0 if future.exception() else future.result()
        lines, self._writing = self._writing[:done], self._writing[done:]
        self._waiting -= sum(map(len, lines))
        if lines:
            left = len(self._writing) + len(self._lines)
            self._tells.written(done, self._file.chain.seq - left)
        if error is not None:
            self._fails(error)
            self._timer = self._loop.call_later(RETRY, self._flush)
            return
        self._recovered()
        if self._lines:
            self._schedule()
        else:
            self._idle.set()

    def _submit(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        self._loop.run_in_executor(self._thread, work).add_done_callback(then)

    def _fails(self, error: BaseException) -> None:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if not self.failing:
            log.error("calls cannot be recorded: %s; it is tried again every %g s", text, RETRY)
        self.failing = text

    def _recovered(self) -> None:
        """The file takes lines: say so, and what is missing in it."""
        if self.failing:
            self.failing = ""
            log.warning("calls are recorded again")
        missing, self._told_lost = self.lost - self._told_lost, self.lost
        if missing:
            log.error("%d calls have no record: too many waited for the disk", missing)
            self.append(self._tells.gap(missing))

    async def close(self) -> None:
        """Write what waits, bounded, and let go of the file."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN):
                await self._idle.wait()
        if self._timer is not None:
            self._timer.cancel()
        left = len(self._writing) + len(self._lines) + len(self._early)
        if left:
            log.error("%d calls have no record: they could not be written in time", left)
        stuck = bool(self._writing) and not self.failing
        self._thread.shutdown(wait=not stuck, cancel_futures=True)
        if not stuck:
            self._file.close()
