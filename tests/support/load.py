"""Steady load on servers, and what of it failed."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from support.client import Session
from support.waiting import WITHIN, eventually


class Load:
    """Sessions that call, until they are stopped.

    Attributes:
        pause: seconds that each waits between an answer and its next call.
        within: seconds that each waits for an answer.
        calls: how many were made, the failed ones too.
        failed: what went wrong, one text for each failed call.
        longest: seconds that one call took, at most.
    """

    def __init__(
        self, clients: Sequence[Session], pause: float = 0.0, *, within: float = WITHIN
    ) -> None:
        self.clients = clients
        self.pause = pause
        self.within = within
        self.calls = 0
        self.failed: list[str] = []
        self.longest = 0.0
        self._off = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._run(client)) for client in self.clients]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._off.set()
        await asyncio.gather(*self._tasks)

    async def _run(self, client: Session) -> None:
        while not self._off.is_set():
            text, began = f"{self.calls}", time.monotonic()
            try:
                assert await client.text("echo", within=self.within, text=text) == text
            except (AssertionError, OSError, EOFError, TimeoutError) as error:
                self.failed.append(repr(error))
            self.calls += 1
            self.longest = max(self.longest, time.monotonic() - began)
            if self.pause:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.pause):
                        await self._off.wait()

    async def more(self, count: int) -> None:
        """Wait until so many more calls were made."""
        enough = self.calls + count
        await eventually(lambda: self.calls >= enough, within=30)
