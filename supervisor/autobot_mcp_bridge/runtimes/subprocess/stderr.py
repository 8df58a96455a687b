"""A server's stderr: always read, logged within a budget, its last lines kept."""

import asyncio
import os
from collections.abc import Callable

from autobot_mcp_bridge.model.budget import Budget
from autobot_mcp_bridge.model.redact import Redactor

# The budget counts pieces of a line: what a line costs grows with its length.
PIECES_PER_SECOND = 100
BURST = 200
PIECE = 512  # bytes
LONGEST_LINE = 4096  # characters that are logged of one line
LAST_LINES = 8
LAST_BYTES = 2048
# More than is shown, so that a secret at the edge is whole when it is looked for.
_KEPT = LONGEST_LINE + 1024
_READ = 1 << 16  # a pipe holds no more
_REPORT_AFTER = 1.0  # seconds from the first dropped line until the drop is told


class Stderr:
    """Reads a descriptor to its end and owns it.

    Attributes:
        dropped: how many lines were not logged, so far.
    """

    def __init__(
        self,
        fd: int,
        write: Callable[[str], None],
        redact: Redactor,
        dropped: Callable[[int], None],
    ) -> None:
        self.dropped = 0
        self._fd = fd
        self._write = write
        self._redact = redact
        self._count_dropped = dropped
        self._loop = asyncio.get_running_loop()
        self._budget = Budget(PIECES_PER_SECOND, BURST, self._loop.time())
        self._partial = b""
        self._tail = b""
        self._untold = 0
        self._report: asyncio.TimerHandle | None = None
        self._closed = asyncio.Event()
        self._loop.add_reader(fd, self._readable)

    async def finish(self, within: float) -> tuple[str, ...]:
        """Wait for the end at most this many seconds, close, and return the last lines.

        Bounded because a process that left the group may hold the pipe open for ever.
        """
        try:
            async with asyncio.timeout(within):
                await self._closed.wait()
        except TimeoutError:
            self._close()
        return self._last_words()

    def _readable(self) -> None:
        try:
            chunk = os.read(self._fd, _READ)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._close()
            return
        self._tail = (self._tail + chunk)[-_KEPT:]
        if len(self._partial) >= _KEPT:  # the rest of a line that is too long
            newline = chunk.find(b"\n")
            if newline < 0:
                return
            chunk = chunk[newline:]
        self._take(self._partial + chunk)

    def _take(self, data: bytes) -> None:
        start = 0
        now = self._loop.time()
        while (end := data.find(b"\n", start)) >= 0:
            if not self._budget.take(now, 1 + (end - start) // PIECE):
                # A flood is only counted: that costs a fraction of what splitting it would.
                self._drop(data.count(b"\n", start))
                start = data.rfind(b"\n") + 1
                break
            self._log(data[start:end])
            start = end + 1
        self._partial = data[start : start + _KEPT]

    def _log(self, line: bytes) -> None:
        text = self._shown(line)
        if text:
            self._write(text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE] + "…")

    def _shown(self, line: bytes) -> str:
        return self._redact(line.decode("utf-8", "replace").rstrip())

    def _drop(self, count: int) -> None:
        self.dropped += count
        self._untold += count
        self._count_dropped(count)
        if self._report is None:
            self._report = self._loop.call_later(_REPORT_AFTER, self._tell)

    def _tell(self) -> None:
        if self._report is not None:
            self._report.cancel()
            self._report = None
        if self._untold:
            self._write(f"{self._untold} more lines of stderr are left out")
            self._untold = 0

    def _close(self) -> None:
        if self._closed.is_set():
            return
        self._closed.set()
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        if self._partial:
            self._take(self._partial[:_KEPT] + b"\n")
        self._tell()

    def _last_words(self) -> tuple[str, ...]:
        lines = self._tail.split(b"\n")
        if len(self._tail) == _KEPT and len(lines) > 1:
            del lines[0]  # its beginning is missing
        texts = [text for line in lines if (text := self._shown(line))][-LAST_LINES:]
        left = LAST_BYTES
        kept: list[str] = []
        for text in reversed(texts):
            piece = text.encode()[-left:].decode("utf-8", "ignore")
            if not piece:
                break
            kept.append(piece)
            left -= len(piece.encode())
            if left <= 0:
                break
        return tuple(reversed(kept))
