"""Code of others, run off the event loop with a deadline, and a bounded number of it at once."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any, TypeVar

# What never returns keeps its thread for ever; the others go on until all are kept.
THREADS = 8
Value = TypeVar("Value")


class AsideError(Exception):
    """It did not end in time, or was not begun: all threads are busy."""


class _Raising(AbstractContextManager[None]):
    """Hands whatever is raised to who waits for the result."""

    def __init__(self, run: "Future[Any]") -> None:
        self._run = run

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        if error is not None:
            self._run.set_exception(error)
        return True


class Aside:
    """A thread for each call, which nobody waits for when the proxy ends.

    For those of a pool somebody would (concurrent.futures joins them at the interpreter's end).
    """

    def __init__(self) -> None:
        self._busy = 0

    async def run(self, deadline: float, function: Callable[[], Value]) -> Value:
        """What the function gives, or what it raises.

        Raises:
            AsideError: not within so many seconds.
        """
        if self._busy >= THREADS:
            raise AsideError(f"{THREADS} of them have not returned")
        loop = asyncio.get_running_loop()
        run: Future[Value] = Future()
        self._busy += 1

        def work() -> None:
            if run.set_running_or_notify_cancel():
                with _Raising(run):
                    run.set_result(function())
            with suppress(RuntimeError):  # the loop is closed by now
                loop.call_soon_threadsafe(self._returned)

        threading.Thread(target=work, name="policy", daemon=True).start()
        try:
            async with asyncio.timeout(deadline):
                return await asyncio.wrap_future(run)
        except TimeoutError:
            if run.done() and not run.cancelled():
                raise  # its own
            raise AsideError(f"it did not end within {deadline:g} s") from None

    def _returned(self) -> None:
        self._busy -= 1
