"""Messages that wait for a slow reader: bounded in number and bytes, the oldest goes first (D8)."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

# What a queued message costs beside its bytes: the object, the slot.
OVERHEAD = 128


@dataclass(slots=True)
class Room:
    """Bytes that several backlogs may hold together."""

    limit: int
    used: int = 0


class Backlog:
    """A queue for one reader, who may come late, be slow, or never come."""

    __slots__ = ("_bytes", "_dropped", "_events", "_max_bytes", "_max_events", "_room")

    def __init__(
        self,
        max_events: int,
        max_bytes: int,
        dropped: Callable[[], None],
        room: Room | None = None,
    ) -> None:
        """`dropped` is called once for each message that is lost; `room` is shared with others."""
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._dropped = dropped
        self._room = room or Room(max_bytes)
        self._events: deque[bytes] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._events)

    def push(self, event: bytes) -> None:
        """Add a message; when it does not fit, its elders make place, or it is lost itself."""
        size = len(event) + OVERHEAD
        others = self._room.used - self._bytes
        if size > self._max_bytes or others + size > self._room.limit:
            self._dropped()  # its elders could not make place either
            return
        while self._events and not self._fits(size):
            self.pop()
            self._dropped()
        self._events.append(event)
        self._bytes += size
        self._room.used += size

    def _fits(self, size: int) -> bool:
        return (
            len(self._events) < self._max_events
            and self._bytes + size <= self._max_bytes
            and self._room.used + size <= self._room.limit
        )

    def pop(self) -> bytes:
        """Take the oldest; IndexError when there is none."""
        event = self._events.popleft()
        size = len(event) + OVERHEAD
        self._bytes -= size
        self._room.used -= size
        return event

    def clear(self) -> None:
        self._events.clear()
        self._room.used -= self._bytes
        self._bytes = 0
