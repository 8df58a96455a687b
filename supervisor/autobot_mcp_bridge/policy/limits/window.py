"""Sliding windows in this process's memory: for one proxy; a restart begins them anew."""

import time
from collections import deque
from collections.abc import Callable, Sequence

from autobot_mcp_bridge.model.rates import Rate
from autobot_mcp_bridge.policy.limits.counter import CountError, Full, Limit

# Windows that are kept; beyond it nothing new is counted, and so nothing new is let through.
MOST_WINDOWS = 100_000
# How often those that are empty are looked for, in seconds.
PURGE = 30.0
# Marks of one window: above so many events those close together share a mark, the later one's.
MOST_MARKS = 1000


class Window:
    """When the events of the last `rate.seconds` were."""

    __slots__ = ("_marks", "_rate", "count")

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._marks: deque[tuple[float, int]] = deque()
        self.count = 0

    def wait(self, now: float) -> float:
        """Seconds until there is room for one event; 0 if there is."""
        while self._marks and self._marks[0][0] <= now - self._rate.seconds:
            self.count -= self._marks.popleft()[1]
        if self.count < self._rate.count:
            return 0.0
        return self._marks[0][0] + self._rate.seconds - now if self._marks else self._rate.seconds

    def add(self, now: float) -> None:
        events = 1
        if self._marks and self._rate.count > MOST_MARKS:
            last, several = self._marks[-1]
            if now - last < self._rate.seconds / MOST_MARKS:
                self._marks.pop()  # later than it was: a window is never emptied too early
                events += several
        self._marks.append((now, events))
        self.count += 1


class MemoryCounter:
    """Implements `Counter`."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._windows: dict[tuple[str, str], Window] = {}
        self._purged = now()

    async def take(self, limits: Sequence[Limit]) -> Full | None:
        now = self._now()
        if now - self._purged >= PURGE or len(self._windows) >= MOST_WINDOWS:
            self._purge(now)
        windows = []
        for limit in limits:
            window = self._windows.get((limit.key, limit.rate.text)) or self._new(limit)
            if (wait := window.wait(now)) > 0:
                return Full(limit, wait)
            windows.append(window)
        for window in windows:
            window.add(now)
        return None

    def _new(self, limit: Limit) -> Window:
        if len(self._windows) >= MOST_WINDOWS:
            raise CountError("too many callers are counted")
        window = self._windows[limit.key, limit.rate.text] = Window(limit.rate)
        return window

    def _purge(self, now: float) -> None:
        """Forget windows without events (SM-F14)."""
        self._purged = now
        for key, window in list(self._windows.items()):
            window.wait(now)
            if not window.count:
                del self._windows[key]

    async def close(self) -> None: ...
