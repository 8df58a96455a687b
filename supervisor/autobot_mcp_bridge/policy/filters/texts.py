"""Every text of a JSON value."""

from collections.abc import Iterator
from typing import Any


def texts_of(value: Any) -> Iterator[str]:
    """The strings in it, keys included, without recursion: a body may nest 254 levels deep."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            yield from one
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
