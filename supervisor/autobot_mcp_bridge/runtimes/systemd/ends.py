"""How invocations end: what the bus tells of them, joined with their last words."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from autobot_mcp_bridge.supervision.ended import FOLDER, WITHIN, LastWords, last_words
from autobot_mcp_bridge.supervision.unit_events import Ended

# Ends that are remembered: more than there can be questions about.
MOST = 4096


class Ends:
    """The last invocations that are over, by their id."""

    def __init__(self, connected: Callable[[], bool], folder: Path = FOLDER) -> None:
        """`connected` tells whether anything can be told at all."""
        self._connected = connected
        self._folder = folder
        self._told: OrderedDict[str, Ended] = OrderedDict()
        self._news = asyncio.Event()

    def tell(self, ended: Ended) -> None:
        self._told[ended.invocation] = ended
        while len(self._told) > MOST:
            self._told.popitem(last=False)
        self._news.set()
        self._news = asyncio.Event()

    def asked(self, invocation: str) -> bool:
        """Whether a job has stopped it, an operator's or ours."""
        ended = self._told.get(invocation)
        return ended is not None and ended.asked_by_job

    async def over(self, invocation: str) -> Ended:
        """Wait until systemd has told its end; not bounded, the bus may be away."""
        while (ended := self._told.get(invocation)) is None:
            await self._news.wait()
        return ended

    async def words(self, instance: str, invocation: str) -> LastWords | None:
        """Its last words, once the bus has told its end too, or at the latest after WITHIN."""
        try:
            async with asyncio.timeout(WITHIN):
                found = await last_words(instance, invocation, folder=self._folder)
                if self._connected():
                    await self.over(invocation)
                return found
        except TimeoutError:
            return await last_words(instance, invocation, folder=self._folder, within=0)
