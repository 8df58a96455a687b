"""The failure breaker: a pure state machine that decides whether a server may be started again.

Closed: starts are allowed, crashes within the window are counted. More than `crashes` of them open
it. Open: no start for a sixth of the window (10 s of the usual minute). Then, with `probe`,
half-open: one start may be tried; an answer closes the breaker, a crash opens it for twice as long
as before, at most 15 windows. Without `probe` only a reset closes it.
"""

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from autobot_mcp_bridge.model.server import Breaker as BreakerSettings

# Of the window: the first wait, and the longest.
FIRST_WAIT, LONGEST_WAIT = 1 / 6, 15


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Fed by whichever runtime; every method takes the time in seconds of a monotonic clock.

    `changed` is called whenever `dump` gives something else.
    """

    def __init__(
        self, settings: BreakerSettings, changed: Callable[[], None] = lambda: None
    ) -> None:
        self.settings = settings
        self._changed = changed
        self.total = 0
        self.openings = 0  # since this object was made
        self.state = BreakerState.CLOSED
        self._crashes: deque[float] = deque(maxlen=settings.crashes + 1)
        self._opened = 0.0
        self._wait = settings.window * FIRST_WAIT

    def configure(self, settings: BreakerSettings) -> None:
        """Take new settings and forget no crash that still counts."""
        self.settings = settings
        self._crashes = deque(self._crashes, maxlen=settings.crashes + 1)

    def crashed(self, now: float) -> None:
        self.total += 1
        self._crashes.append(now)
        window = self.settings.window
        if self.state is BreakerState.HALF_OPEN:
            self._open(now, min(self._wait * 2, window * LONGEST_WAIT))
        elif self.recent(now) > self.settings.crashes:
            self.openings += self.state is BreakerState.CLOSED
            self._open(now, window * FIRST_WAIT)
        self._changed()

    def _open(self, now: float, wait: float) -> None:
        self.state = BreakerState.OPEN
        self._opened, self._wait = now, wait

    def answered(self) -> None:
        """An answer came: a probe that was under way has succeeded."""
        if self.state is BreakerState.HALF_OPEN:
            self.reset()

    def left(self, now: float) -> None:
        """A probe has ended without an answer or a crash: another may be tried at once."""
        if self.state is BreakerState.HALF_OPEN:
            self._open(now - self._wait, self._wait)
            self._changed()

    def may_start(self, now: float) -> bool:
        """Tell whether a start is allowed now; asking past the wait makes it the one probe."""
        if self.state is BreakerState.CLOSED:
            return True
        if (
            self.state is BreakerState.OPEN
            and self.settings.probe
            and now - self._opened >= self._wait
        ):
            self.state = BreakerState.HALF_OPEN
            self._changed()
            return True
        return False

    def retry_after(self, now: float) -> float:
        """Seconds until a start may be tried; the longest wait when only a reset helps."""
        if self.state is BreakerState.CLOSED:
            return 0.0
        if not self.settings.probe:
            return self.settings.window * LONGEST_WAIT
        if self.state is BreakerState.HALF_OPEN:
            return self._wait
        return max(0.0, self._opened + self._wait - now)

    def recent(self, now: float) -> int:
        return sum(1 for then in self._crashes if now - then < self.settings.window)

    def reset(self) -> None:
        """Close it and forget the crashes; the total stays."""
        self.state = BreakerState.CLOSED
        self._crashes.clear()
        self._changed()

    def dump(self) -> list[Any]:
        """What a later process of the same boot can `load`; CLOCK_MONOTONIC is the machine's."""
        return [self.state.value, self.total, self._opened, self._wait, list(self._crashes)]

    def load(self, dumped: object) -> None:
        """Go on where another has stopped; what is no dump changes nothing."""
        match dumped:
            case [
                str(state),
                int(total),
                int() | float() as opened,
                int() | float() as wait,
                list(crashes),
            ] if state in list(BreakerState):
                self.state = BreakerState(state)
                self.total = total
                self._opened, self._wait = opened, wait
                self._crashes = deque(crashes, maxlen=self.settings.crashes + 1)
