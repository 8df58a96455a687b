"""The one task that looks after the processes of all servers: their memory and their orphans."""

import asyncio
import itertools
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from autobot_mcp_bridge.runtimes.subprocess.kin import Census, Kin, Mains
from autobot_mcp_bridge.runtimes.subprocess.memory import excess

INTERVAL = 0.5  # seconds
# Children of other threads than the first are rare, and looking for them costs a read per thread.
_THOROUGH_EVERY = 4
CLEAR_WITHIN = 2.0  # seconds until a caller no longer waits for strays; the task goes on
_FIRST_PAUSE = 0.005  # for a killed process to become a zombie
_LONGEST_PAUSE = 0.1
_log = logging.getLogger(__name__)


class Watch:
    """Knows the kin of every server from before its start until nothing is left of it."""

    def __init__(self, mains: Mains, exceeded: Callable[[str, str], None]) -> None:
        """`exceeded` is called with the invocation and the figures in words."""
        self.kin: dict[str, Kin] = {}
        self._exceeded = exceeded
        self._census = Census(mains)
        # One thread: looking and reaping in two at once would need a lock anyway.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="survey")
        self._closed = False
        self._task = asyncio.create_task(self._run(), name="watch servers")

    async def clear(self, one: Kin) -> None:
        """End everything that is left of a server whose main process is gone; bounded."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + CLEAR_WITHIN
        pause = _FIRST_PAUSE
        while not self._closed and await loop.run_in_executor(self._pool, self._end, one):
            if loop.time() > deadline:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def close(self) -> None:
        self._closed = True
        self._task.cancel()
        await asyncio.wait([self._task])
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        for tick in itertools.count():
            await asyncio.sleep(INTERVAL)
            if not self.kin:
                continue
            try:
                found = await loop.run_in_executor(
                    self._pool, self._survey, tick % _THOROUGH_EVERY == 0
                )
            except Exception:  # noqa: BLE001 - one odd process must not end the limits of all others
                _log.exception("a look at the servers' processes failed")
                continue
            for invocation, figures in found:
                self._exceeded(invocation, figures)

    def _end(self, one: Kin) -> bool:
        left = self._census.end(one, list(self.kin.values()))
        if not left:
            self.kin.pop(one.invocation, None)
        return left

    def _survey(self, thorough: bool) -> list[tuple[str, str]]:
        kin = list(self.kin.values())
        orphans = self._census.orphans(kin)
        found = []
        for one in kin:
            if one.ended:
                self._end(one)
                continue
            members = self._census.members(one, orphans.get(one, ()), all_threads=thorough)
            figures = excess(members, one.memory)
            if figures is not None:
                found.append((one.invocation, figures))
        return found
