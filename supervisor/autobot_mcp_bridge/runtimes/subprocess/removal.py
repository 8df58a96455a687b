"""The end of workspaces, whatever their servers have left in them.

A tree that a stranger has made may be as deep and as large as it likes. It is removed by rm(1),
which needs neither a descriptor nor a frame for each level, in a process of its own: what it takes
holds up nobody here, and it can be ended. It follows no link and leaves no file system.
"""

import asyncio
import logging
import secrets
from contextlib import suppress
from pathlib import Path

from autobot_mcp_bridge.runtimes.subprocess.identity import WORKSPACES

# Trees that are removed at once; more would only fight for the same disk.
AT_ONCE = 2
# Seconds for one. What is left then is the next proxy's.
REMOVE_WITHIN = 600.0
CLOSE_WITHIN = 2.0  # seconds for what is small
_LEFT = f"{WORKSPACES}-"  # and random digits: those of a proxy before
_log = logging.getLogger(__name__)


class Removal:
    """Removes the workspaces of one runtime; to be used from its event loop."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._room = asyncio.Semaphore(AT_ONCE)
        self._swept = False
        self._tasks: set[asyncio.Task[None]] = set()

    def sweep(self) -> None:
        """Once: put away what a proxy has left that was killed, and remove it in the background."""
        if self._swept:
            return
        self._swept = True
        aside = self._state_dir / f"{_LEFT}{secrets.token_hex(4)}"
        with suppress(FileNotFoundError):
            (self._state_dir / WORKSPACES).rename(aside)
        left = [str(path) for path in self._state_dir.glob(f"{_LEFT}*")]
        if left:
            self._begin(left)

    def remove(self, slot: str) -> None:
        """Remove one whose processes have ended, in the background: nobody waits for it."""
        self._begin([str(self._state_dir / WORKSPACES / slot)])

    async def close(self) -> None:
        """End soon, and leave the rest to the next proxy."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=CLOSE_WITHIN)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _begin(self, paths: list[str]) -> None:
        task = asyncio.create_task(self._remove(paths), name="remove workspaces")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _remove(self, paths: list[str]) -> None:
        async with self._room:
            try:
                await _rm(paths)
            except (OSError, TimeoutError) as error:
                _log.warning("%s: not removed: %s", ", ".join(paths), error or "it takes too long")


async def _rm(paths: list[str]) -> None:
    quiet = asyncio.subprocess.DEVNULL
    words = ("rm", "-rf", "--one-file-system", "--", *paths)
    process = await asyncio.create_subprocess_exec(*words, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        async with asyncio.timeout(REMOVE_WITHIN):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise OSError(f"rm ended with {process.returncode}")
