"""Calls that wait for a start."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar

from autobot_mcp_bridge.model.errors import CallError

# What a call that is traced has around its wait for a start; it costs nothing where there is none.
WAITING: ContextVar[Callable[[], AbstractContextManager[None]]] = ContextVar(
    "waiting", default=nullcontext
)


class Waiters:
    """Futures that one start wakes together, or fails together."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        """Those that still wait: a caller may have gone."""
        self._waiting = {waiter for waiter in self._waiting if not waiter.done()}
        return len(self._waiting)

    def add(self) -> asyncio.Future[None]:
        """One more; nobody need await it."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        return waiter

    async def wait(self) -> None:
        """Wait with the others.

        Raises:
            CallError: as `fail` says.
        """
        waiter = self.add()
        try:
            with WAITING.get()():
                await waiter
        finally:
            self._waiting.discard(waiter)

    def wake(self) -> None:
        for waiter in self._take():
            waiter.set_result(None)

    def fail(self, error: CallError) -> None:
        for waiter in self._take():
            waiter.set_exception(error)
            waiter.exception()  # a caller that has gone must not make a warning of it

    def _take(self) -> list[asyncio.Future[None]]:
        waiting, self._waiting = self._waiting, set()
        return [waiter for waiter in waiting if not waiter.done()]
