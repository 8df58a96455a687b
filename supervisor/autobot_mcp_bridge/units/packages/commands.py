"""Where the servers' commands come from: found on the host, or installed into the store.

A start execs what stands here, offline; nothing is resolved or downloaded then (BUGS S9, S10).
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.packages import remote
from autobot_mcp_bridge.units.packages.installer import install_package
from autobot_mcp_bridge.units.packages.job import InstallError, Job
from autobot_mcp_bridge.units.packages.live import is_live, misused
from autobot_mcp_bridge.units.packages.resolve import resolve
from autobot_mcp_bridge.units.packages.specs import PackageSpec, parse_command
from autobot_mcp_bridge.units.packages.store import Store

# Installs at a time: each unpacks thousands of files, and registries limit a host.
PARALLEL = 2
# How often a running install says that it lives.
PROGRESS_EVERY = 5.0
# After so long a call that met "installing" may try again.
RETRY_AFTER = 5.0

log = logging.getLogger(__name__)
# A definition's words, and whether npx and uvx are run as they are.
Wanted = tuple[tuple[str, ...], bool]


@dataclass(frozen=True, slots=True)
class _Failed:
    why: str


class Packages:
    """Resolved commands by server, and the installs under way. One object for a proxy's life.

    Args:
        store: the directory of the packages (Places.packages).
        environ: the caller's environment: installs get all of it, PATH is searched.
        progress: gets a line for people when an install begins, every few seconds, and at its end.
    """

    def __init__(
        self,
        store: Path,
        *,
        environ: Mapping[str, str],
        progress: Callable[[str], None],
    ) -> None:
        self._store = Store(store)
        self._environ = dict(environ)
        self._progress = progress
        self._closing = False
        self._ready: Callable[[ServerSpec], None] | None = None
        self._found: dict[Wanted, Command | _Failed] = {}
        self._specs: tuple[ServerSpec, ...] = ()
        self._told: set[tuple[str, Wanted]] = set()
        self._tasks: dict[object, asyncio.Task[None]] = {}
        self._jobs: set[Job] = set()
        self._room = asyncio.Semaphore(PARALLEL)

    def command(self, spec: ServerSpec) -> Command:
        """The resolved command; from memory, once `ensure` has seen the server.

        Raises:
            CallError: INSTALLING while it is not there yet, INSTALL_FAILED with the cause.
        """
        if spec.url is not None:
            return remote.command(spec, sys.executable, units=False)
        found = self._found.get(_wanted(spec))
        if (clause := misused(spec)) is not None:
            found = _Failed(f"profile: {clause}")
        if found is None:
            what = f"{spec.instance}: its package is being installed"
            raise CallError(Cause.INSTALLING, what, retry_after=RETRY_AFTER)
        if isinstance(found, _Failed):
            raise CallError(Cause.INSTALL_FAILED, f"{spec.instance}: {found.why}")
        return found

    async def ensure(self, specs: Iterable[ServerSpec]) -> None:
        """Look for every server's command; what is not installed is installed in the background.

        What had failed is tried again. Returns once all that is there already can be started.
        """
        self._specs = tuple(specs)
        wanted_ones = {_wanted(spec) for spec in self._specs if spec.command}
        seen = await asyncio.to_thread(self._look, wanted_ones)
        for wanted, found in seen.items():
            if isinstance(found, PackageSpec):
                self._begin(wanted, found)
            else:
                self._found[wanted] = found
        self._tell()

    async def settled(self) -> None:
        """Wait until no install is under way; not bounded beyond each install's own deadline."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def close(self) -> None:
        """End the installs under way: what is half done is redone at the next start."""
        self._closing = True
        for job in self._jobs:
            job.cancelled.set()
        await self.settled()

    def on_ready(self, tell: Callable[[ServerSpec], None] | None) -> None:
        """Tell of each server whose command is ready, once: those that are now, others later."""
        self._ready = tell
        self._tell()

    def _look(self, commands: set[Wanted]) -> dict[Wanted, Command | _Failed | PackageSpec]:
        return {wanted: self._look_at(wanted) for wanted in commands}

    def _look_at(self, wanted: Wanted) -> Command | _Failed | PackageSpec:
        argv, live = wanted
        try:
            return resolve(argv, self._store, self._environ, live=live)
        except InstallError as error:
            return _Failed(str(error))

    def _begin(self, wanted: Wanted, package: PackageSpec) -> None:
        self._found.pop(wanted, None)
        if package.package not in self._tasks:
            task = asyncio.create_task(self._install(package), name=package.label)
            self._tasks[package.package] = task

    async def _install(self, package: PackageSpec) -> None:
        failed: _Failed | None = None
        try:
            try:
                async with self._room:
                    if not self._closing:
                        await self._run(package)
            except InstallError as error:
                failed = _Failed(str(error))
            except Exception:
                log.exception("%s: fault while installing", package.label)
                failed = _Failed("a fault of the installer; its log tells more")
            if not self._closing:
                await self._settle(package, failed)
        finally:
            del self._tasks[package.package]

    async def _run(self, package: PackageSpec) -> None:
        """One install in a thread of its own, with signs of life."""
        name = f"{package.label} ({package.kind.value})"
        job = Job(
            self._store.log_file(f"{package.kind.value}-{package.directory_name}"), self._environ
        )
        self._jobs.add(job)
        began = time.monotonic()
        self._progress(f"installing {name} …")
        work = asyncio.create_task(asyncio.to_thread(install_package, package, self._store, job))
        try:
            while True:
                done, _ = await asyncio.wait({work}, timeout=PROGRESS_EVERY)
                passed = f"{time.monotonic() - began:.0f} s"
                if done:
                    break
                self._progress(f"installing {name} …  {passed}")
            work.result()
            self._progress(f"installed {name} in {passed}")
        except InstallError as error:
            if not self._closing:
                self._progress(f"not installed: {name}: {error}")
            raise
        finally:
            job.cancelled.set()
            self._jobs.discard(job)

    async def _settle(self, package: PackageSpec, failed: _Failed | None) -> None:
        """Give every server that wants this package its command, or the cause."""
        for wanted in {_wanted(spec) for spec in self._specs if spec.command and not is_live(spec)}:
            try:
                own = parse_command(wanted[0])
            except ValueError:
                continue
            if own is None or own.package != package.package:
                continue
            found: Command | _Failed | PackageSpec | None = failed
            if found is None:
                found = await asyncio.to_thread(self._look_at, wanted)
            if isinstance(found, PackageSpec):
                found = _Failed("it was installed, and is not there any more")
            self._found[wanted] = found
        self._tell()

    def _tell(self) -> None:
        if self._ready is None:
            return
        for spec in self._specs:
            found = self._found.get(_wanted(spec))
            ready = spec.url is not None or isinstance(found, Command)
            if ready and (spec.instance, _wanted(spec)) not in self._told:
                self._told.add((spec.instance, _wanted(spec)))
                self._ready(spec)


def _wanted(spec: ServerSpec) -> Wanted:
    return spec.command, is_live(spec)
