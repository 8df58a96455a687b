"""What waits for a session's GET stream: bounded, the oldest goes first (D8)."""

import asyncio
from collections import deque
from collections.abc import Callable


class Outbox:
    """Messages for one reader, who may come late, be slow, or never come."""

    def __init__(self, max_events: int, max_bytes: int, on_dropped: Callable[[str], None]) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._on_dropped = on_dropped
        self._events: deque[bytes] = deque()
        self._bytes = 0
        self._wake: asyncio.Future[None] | None = None
        self.closed = False
        self.taken = False  # a stream reads it

    def push(self, event: bytes) -> None:
        if self.closed or len(event) > self._max_bytes:
            self._on_dropped("slow_stream")
            return
        self._events.append(event)
        self._bytes += len(event)
        while len(self._events) > self._max_events or self._bytes > self._max_bytes:
            self._bytes -= len(self._events.popleft())
            self._on_dropped("slow_stream")
        self._ring()

    def close(self) -> None:
        """End the stream once it has been read empty."""
        self.closed = True
        self._ring()

    def _ring(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def next(self, patience: float) -> bytes | None:
        """The next message; None when nothing came within `patience` seconds.

        Raises:
            EOFError: the outbox is closed and empty.
        """
        if not self._events and not self.closed:
            self._wake = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(patience):
                    await self._wake
            except TimeoutError:
                return None
            finally:
                self._wake = None
        if self._events:
            event = self._events.popleft()
            self._bytes -= len(event)
            return event
        raise EOFError
