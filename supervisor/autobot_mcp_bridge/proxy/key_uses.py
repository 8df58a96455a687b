"""When each key was used last: remembered at each call, written down now and then."""

import asyncio
import logging
import time
from pathlib import Path

from autobot_mcp_bridge.config.keys import read_uses, write_uses
from autobot_mcp_bridge.policy.keys import KeyTable

# Seconds between two writes: what a killed proxy forgets at most.
EVERY = 60.0

log = logging.getLogger(__name__)


class KeyUses:
    """Keeps the file of a table's uses; as many entries as there are keys."""

    def __init__(self, table: KeyTable, path: Path) -> None:
        self._table = table
        self._path = path
        self._saved = time.monotonic()
        self._written = table.changes
        self._failing = False

    async def recall(self) -> None:
        """Go on from what an earlier process has written."""
        self._table.recall(await asyncio.to_thread(read_uses, self._path))

    async def save_sometimes(self) -> None:
        if time.monotonic() - self._saved >= EVERY:
            await self.save()

    async def save(self) -> None:
        """Write the uses down if there were any; that it cannot be is told once, and no fault."""
        self._saved = time.monotonic()
        changes = self._table.changes
        if changes == self._written:
            return
        try:
            await asyncio.to_thread(write_uses, self._path, self._table.uses())
            self._written, self._failing = changes, False
        except OSError as error:
            if not self._failing:
                log.warning("%s: cannot be written: %s", self._path, error.strerror)
            self._failing = True
