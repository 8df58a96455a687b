"""The seam between what is limited and where it is counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from autobot_mcp_bridge.model.rates import Rate


class Limit(NamedTuple):
    """One window that a call counts in.

    Attributes:
        key: by which it is counted; equal keys share one window.
        says: what it is of, for who is refused: never a key.
    """

    key: str
    rate: Rate
    says: str


@dataclass(frozen=True, slots=True)
class Full:
    """A window without room, and the seconds until it has some."""

    limit: Limit
    retry_after: float


class CountError(Exception):
    """It cannot be counted now; the call must not be made."""


class Counter(Protocol):
    """Sliding windows: never more than `rate.count` events within any `rate.seconds`."""

    async def take(self, limits: Sequence[Limit]) -> Full | None:
        """Count one event in all of the windows, or in none.

        The first one that is full is told. Bounded by a deadline where it asks something outside.

        Raises:
            CountError: it cannot be counted; nothing is known of the windows then.
        """
        ...

    async def close(self) -> None:
        """Let go of connections; idempotent."""
        ...
