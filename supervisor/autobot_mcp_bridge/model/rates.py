"""How often something may happen: a number a second, minute or hour (SM-18)."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

# Six digits bound what a window has to remember.
RATE = r"^\d{1,6}/(second|minute|hour)$"
RATE_IN_WORDS = "N/second, N/minute or N/hour with N of at most six digits"
RateText = Annotated[str, Field(pattern=RATE)]
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
_RATE = re.compile(RATE)


@dataclass(frozen=True, slots=True)
class Rate:
    """So many within so many seconds; `text` is how a person wrote it."""

    count: int
    seconds: float
    text: str


def rate_of(text: str) -> Rate:
    """The rate that a text in RATE's form says."""
    count, _, unit = text.partition("/")
    return Rate(int(count), _SECONDS[unit], text)
