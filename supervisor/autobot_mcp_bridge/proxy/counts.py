"""What happened to one server since the proxy started, counted where it happens."""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate

# Seconds: a server that cannot start, one that dies of each call, one that leaks.
BOUNDS = (1, 5, 10, 30, 60, 300, 900)


@dataclass(slots=True)
class Intervals:
    """A histogram of the seconds between events; the first event alone tells nothing."""

    total: float = 0.0
    _last: float | None = None
    _counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))

    def happened(self, now: float) -> None:
        """One more event, at so many seconds of a monotonic clock."""
        if self._last is not None:
            passed = now - self._last
            self.total += passed
            self._counts[bisect_left(BOUNDS, passed)] += 1
        self._last = now

    def buckets(self) -> list[tuple[str, float]]:
        """Upper bound and how many there are up to it, as Prometheus wants them."""
        names = [*(f"{bound:.1f}" for bound in BOUNDS), "+Inf"]
        return list(zip(names, map(float, accumulate(self._counts)), strict=True))


@dataclass(slots=True)
class Counts:
    """Plain numbers: nothing is paid for a metric until somebody asks for it."""

    calls: Counter[str] = field(default_factory=Counter)  # by outcome
    dropped: Counter[str] = field(default_factory=Counter)  # lines and messages, by reason
    crashes: Counter[str] = field(default_factory=Counter)  # by cause
    starts: int = 0
    between_crashes: Intervals = field(default_factory=Intervals)

    def count_drop(self, reason: str) -> None:
        self.dropped[reason] += 1

    def count_start(self) -> None:
        self.starts += 1
