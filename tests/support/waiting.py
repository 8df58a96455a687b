"""Waiting for something to become true, bounded; the only place in the tests that polls."""

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

# A machine that is busy with other things may need a multiple of every bound.
PATIENCE = float(os.environ.get("MCP_BRIDGE_TEST_PATIENCE", "1"))
WITHIN = 5.0  # seconds that a test waits for anything, unless it says otherwise
_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.05

T = TypeVar("T")


async def eventually(
    predicate: Callable[[], T | Awaitable[T]], *, within: float = WITHIN, what: str = ""
) -> T:
    """Return the predicate's first true value.

    Raises:
        AssertionError: it was never true; the message shows its last value.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within * PATIENCE
    pause = _FIRST_PAUSE
    while True:
        found = predicate()
        value: T = await found if inspect.isawaitable(found) else found
        if value:
            return value
        if loop.time() > deadline:
            raise AssertionError(f"not within {within} s: {what or predicate}; last: {value!r}")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def until(predicate: Callable[[], T], *, within: float = WITHIN) -> T:
    """Return the predicate's first true value, or its last one; for code without an event loop."""
    deadline = time.monotonic() + within * PATIENCE
    pause = _FIRST_PAUSE
    while True:
        value = predicate()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


async def remains(
    predicate: Callable[[], T | Awaitable[T]], *, during: float = 0.5, what: str = ""
) -> None:
    """Watch that the predicate is true the whole time.

    Raises:
        AssertionError: it was false once.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + during
    while loop.time() < deadline:
        found = predicate()
        value = await found if inspect.isawaitable(found) else found
        assert value, f"did not stay true for {during} s: {what or predicate}"
        await asyncio.sleep(_LONGEST_PAUSE)
