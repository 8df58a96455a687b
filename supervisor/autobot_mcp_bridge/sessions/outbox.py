"""What waits for one reader, whose stream ends with its connection."""

import asyncio
from collections.abc import Callable

from autobot_mcp_bridge.channels.backlog import Backlog, Room


class Outbox:
    """Messages for one reader, who may come late, be slow, or never come."""

    def __init__(
        self, max_events: int, max_bytes: int, on_dropped: Callable[[str], None], room: Room
    ) -> None:
        self._on_dropped = on_dropped
        self._backlog = Backlog(max_events, max_bytes, self._dropped, room)
        self._wake: asyncio.Future[None] | None = None
        self.closed = False
        self.taken = False  # a stream reads it
        self._hung_up = False

    def push(self, event: bytes) -> None:
        if self.closed:
            self._dropped()
            return
        self._backlog.push(event)
        self._ring()

    def _dropped(self) -> None:
        self._on_dropped("slow_stream")

    def close(self) -> None:
        """End the stream once it has been read empty; without a reader nothing is kept."""
        self.closed = True
        if not self.taken:
            self._backlog.clear()
        self._ring()

    def hang_up(self) -> None:
        """End the stream once it has been read empty; what comes after waits for another proxy."""
        self._hung_up = True
        self._ring()

    def rest(self) -> list[bytes]:
        """Take what nobody has read."""
        found = []
        while self._backlog:
            found.append(self._backlog.pop())
        return found

    def release(self) -> None:
        """The stream has ended; what it has not read waits for the next, if there can be one."""
        self.taken = False
        if self.closed:
            self._backlog.clear()

    def _ring(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def next(self, patience: float) -> bytes | None:
        """The next message; None when nothing came within `patience` seconds.

        Raises:
            EOFError: the outbox is closed, or hung up, and empty.
        """
        try:
            async with asyncio.timeout(patience):
                # What had rung may have been dropped again by the time it is read.
                while not self._backlog and not self.closed and not self._hung_up:
                    self._wake = asyncio.get_running_loop().create_future()
                    await self._wake
        except TimeoutError:
            return None
        finally:
            self._wake = None
        if self._backlog:
            return self._backlog.pop()
        raise EOFError
