"""Many refusals at once are told once: whoever tries tokens must not fill the log."""

from collections import deque

LIMIT = 5  # refusals
WINDOW = 60.0  # seconds within which they are many
QUIET = 300.0  # seconds for which nothing more is said
MOST = 256  # times that are kept


class Bursts:
    """Counts refusals by their times, which are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=MOST)
        self._quiet_until = float("-inf")
        self.refusals = 0
        self.alerts = 0

    def refused(self, now: float) -> bool:
        """One more; whether it is to be told."""
        self.refusals += 1
        self._times.append(now)
        while self._times[0] <= now - WINDOW:
            self._times.popleft()
        if now < self._quiet_until or len(self._times) < LIMIT:
            return False
        self._quiet_until = now + QUIET
        self.alerts += 1
        return True

    @property
    def recent(self) -> int:
        """How many there were within the window, of those that are kept."""
        return len(self._times)
