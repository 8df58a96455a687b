"""The process of a diagnostic instance: its end by a pidfd, the cause by its record."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.model.death import Death, DeathCause
from autobot_mcp_bridge.runtimes.systemd.handover import Handed
from autobot_mcp_bridge.supervision.ended import FOLDER, last_words

# The record is there within 0.3 s, its lines on a busy machine within 2 s (templates/ended.py).
RECORD_WITHIN = 4.0


class TriedProcess:
    """Implements `Process` of runtimes/base.py, but for what outlives a proxy."""

    def __init__(self, handed: Handed, instance: str, redact: Callable[[str], str]) -> None:
        self.invocation = handed.invocation
        self.pid = handed.pid
        self.stdin_fd = handed.stdin_fd
        self.stdout_fd = handed.stdout_fd
        self.redact = redact
        self._instance = instance
        self._gone = asyncio.Event()
        self._death: Death | None = None
        try:
            self._pidfd = os.pidfd_open(handed.pid)
        except ProcessLookupError:
            self._gone.set()
        else:
            asyncio.get_running_loop().add_reader(self._pidfd, self._exited)

    def _exited(self) -> None:
        self.forget()
        self._gone.set()

    def forget(self) -> None:
        """Watch it no more; idempotent."""
        if not self._gone.is_set() and asyncio.get_running_loop().remove_reader(self._pidfd):
            os.close(self._pidfd)

    async def ended(self) -> Death:
        await self._gone.wait()
        if self._death is None:
            self._death = await death_of_record(
                self._instance, self.invocation, self.redact, began=True
            )
        return self._death

    def has_exited(self) -> bool:
        return self._gone.is_set()

    async def stop(self, grace: float) -> Death:
        del grace  # its instance is stopped as a unit
        return await self.ended()

    def greeted(self, hello: dict[str, Any]) -> None: ...

    def tear(self, *, torn: bool) -> None: ...

    def leave(self, rest: bytes | None) -> None: ...


async def death_of_record(
    instance: str,
    invocation: str,
    redact: Callable[[str], str],
    *,
    began: bool,
    folder: Path = FOLDER,
) -> Death:
    """How an invocation ended, by the record that its unit leaves; bounded by RECORD_WITHIN."""
    found = await last_words(instance, invocation, folder=folder, within=RECORD_WITHIN)
    return found.death(redact, began=began) if found is not None else Death(DeathCause.UNKNOWN)


def newest_invocation(instance: str, folder: Path = FOLDER) -> str | None:
    """The invocation of an instance that has ended last; blocks (disk)."""
    try:
        names = [path.name for path in (folder / ".of" / instance).iterdir()]
    except OSError:
        return None
    newest = max(names, key=lambda name: int(name.split(".")[0]), default=None)
    return None if newest is None else newest.split(".")[1]
