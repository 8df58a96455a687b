"""Which tools of the servers have been accepted: the files of all of them, kept in step."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from autobot_mcp_bridge.config.baselines import Baseline, BaselineFiles
from autobot_mcp_bridge.config.files import RefusedFileError
from autobot_mcp_bridge.config.problem import Problem
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.policy.drift.drift import Drift

log = logging.getLogger(__name__)


class Baselines:
    """One `Drift` for each server whose tools are watched.

    Attributes:
        problems: files that could not be read. Of such a server nothing counts as accepted, until
            somebody accepts it anew.
    """

    def __init__(self, directory: Path) -> None:
        self.problems: tuple[Problem, ...] = ()
        self._files = BaselineFiles(directory)
        self._drifts: dict[str, Drift] = {}
        self._read: set[str] = set()
        self._broken: dict[str, Problem] = {}
        self._written: dict[str, int] = {}
        self._writing = asyncio.Lock()
        self._failing = False

    async def load(self, specs: Iterable[ServerSpec]) -> None:
        """Read what is not known yet of servers whose tools are watched, and forget all others."""
        wanted = tuple(specs)
        unread = [
            spec.instance
            for spec in wanted
            if spec.tools.drift != "off" and spec.instance not in self._read
        ]
        for instance, (baseline, problem) in (await asyncio.to_thread(self._all, unread)).items():
            drift = self.of(instance)
            self._read.add(instance)
            if baseline is not None:
                drift.baseline = baseline
            if problem is not None:
                self._broken[instance] = problem
        self._keep({spec.instance for spec in wanted})

    def _all(
        self, instances: Iterable[str]
    ) -> Mapping[str, tuple[Baseline | None, Problem | None]]:
        found: dict[str, tuple[Baseline | None, Problem | None]] = {}
        for instance in instances:
            try:
                found[instance] = self._files.read(instance), None
            except (RefusedFileError, OSError) as error:
                text = (
                    f"{error}; until `mcp-bridge tools accept {instance}` none of its tools counts "
                    "as accepted"
                )
                problem = Problem(str(self._files.path(instance)), "", "", text)
                found[instance] = Baseline(whole=True), problem
        return found

    def _keep(self, instances: set[str]) -> None:
        for gone in self._drifts.keys() - instances:
            for each in (self._drifts, self._written, self._broken):
                each.pop(gone, None)
            self._read.discard(gone)
        self.problems = tuple(self._broken.values())

    def of(self, instance: str) -> Drift:
        """The one of this server."""
        return self._drifts.setdefault(instance, Drift(instance))

    async def save(self) -> None:
        """Write down what has changed; that it cannot be is told once, and tried again."""
        for instance, drift in list(self._drifts.items()):
            if drift.changes == self._written.get(instance, 0):
                continue
            try:
                async with self._writing:
                    await self._write(drift, drift.baseline)
            except OSError as error:
                if not self._failing:
                    log.warning("%s: cannot be written: %s", error.filename, error.strerror)
                self._failing = True
                return
        self._failing = False

    async def accept(self, drift: Drift, names: Collection[str], seal: str | None) -> list[str]:
        """Accept differing tools, all or some; the names of those that are accepted now.

        They count once they are written: a proxy that is killed meanwhile has accepted all of them
        or none.

        Raises:
            UsageError: there is none of that name, or there are too many.
            OSError: they cannot be written; nothing has changed.
        """
        async with self._writing:
            chosen = drift.choose(names, seal)
            await self._write(drift, drift.accepting(chosen))
            drift.accept(chosen)
        if self._broken.pop(drift.instance, None) is not None:
            self.problems = tuple(self._broken.values())
        return list(chosen)

    async def _write(self, drift: Drift, baseline: Baseline) -> None:
        changes = drift.changes
        await asyncio.to_thread(self._files.write, drift.instance, baseline.copy())
        if drift.instance in self._drifts:
            self._written[drift.instance] = changes
