"""What happened to one server since the proxy started, counted where it happens."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counts:
    """Plain numbers: nothing is paid for a metric until somebody asks for it."""

    calls: Counter[str] = field(default_factory=Counter)  # by outcome
    dropped: Counter[str] = field(default_factory=Counter)  # lines and messages, by reason
    crashes: Counter[str] = field(default_factory=Counter)  # by cause
    starts: int = 0

    def count_drop(self, reason: str) -> None:
        self.dropped[reason] += 1

    def count_start(self) -> None:
        self.starts += 1
