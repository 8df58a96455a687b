"""A token bucket: so much at once, so much a second."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Budget:
    """What may be spent of something; times are seconds of any one clock."""

    rate: float  # comes back each second
    burst: float  # at most so much is there
    at: float  # when it was last looked at
    left: float = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.burst

    def take(self, now: float, cost: float = 1) -> bool:
        """Pay if anything is left; the last one who pays may overdraw."""
        self.left = min(self.burst, self.left + (now - self.at) * self.rate)
        self.at = now
        if self.left < 1:
            return False
        self.left -= cost
        return True
