"""The subprocess runtime: every server a child process of the proxy."""

import asyncio
import logging
import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from autobot_mcp_bridge.model.redact import Redactor
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.runtimes.base import Command, News, Usage
from autobot_mcp_bridge.runtimes.subprocess import identity
from autobot_mcp_bridge.runtimes.subprocess.environment import environment
from autobot_mcp_bridge.runtimes.subprocess.identity import refused
from autobot_mcp_bridge.runtimes.subprocess.kernel import become_subreaper
from autobot_mcp_bridge.runtimes.subprocess.kin import Kin, Mains
from autobot_mcp_bridge.runtimes.subprocess.process import ServerProcess
from autobot_mcp_bridge.runtimes.subprocess.removal import Removal
from autobot_mcp_bridge.runtimes.subprocess.spawn import (
    LAUNCH_TIMEOUT,
    Order,
    Spawned,
    spawn,
)
from autobot_mcp_bridge.runtimes.subprocess.stderr import Stderr
from autobot_mcp_bridge.runtimes.subprocess.unkept import unkept
from autobot_mcp_bridge.runtimes.subprocess.watch import Watch

# Starts at once; each is a python start, so more would only fight for the same cores.
LAUNCHES = 4
Log = Callable[[str, str], None]
SERVERS_LOG = logging.getLogger("autobot_mcp_bridge.servers")


class SubprocessRuntime:
    """Implements `Runtime` of runtimes/base.py; to be made where an event loop runs.

    Attributes:
        dropped_lines: by instance, how many lines of stderr were not logged.
    """

    name = "subprocess"

    def __init__(self, state_dir: Path, *, log: Log | logging.Logger = SERVERS_LOG) -> None:
        """`log` gets the instance and each line of stderr, redacted; it must not block."""
        self.unread = 0
        self.dropped_lines: Counter[str] = Counter()
        self._state_dir = state_dir.absolute()
        self._log = _labelled(log) if isinstance(log, logging.Logger) else log
        self._mains = Mains()
        self._preparing = threading.Lock()
        self._processes: dict[str, ServerProcess] = {}
        self._starts: set[asyncio.Task[ServerProcess]] = set()
        self._closing = False
        become_subreaper()
        self._watch = Watch(self._mains, self._exceeded)
        self._removal = Removal(self._state_dir)
        # Its threads live until close(): a server dies with the thread that started it.
        self._pool = ThreadPoolExecutor(LAUNCHES, thread_name_prefix="launch")

    async def adopt(self, spec: ServerSpec) -> None:
        """No child of ours outlives us."""

    async def start(self, spec: ServerSpec, command: Command, slot: str = "") -> ServerProcess:
        if self._closing:
            raise refused("the proxy is shutting down")
        # A task of its own, because a thread cannot be cancelled: what it starts has an owner.
        task = asyncio.create_task(self._start(spec, command, slot), name=f"start {spec.instance}")
        self._starts.add(task)
        task.add_done_callback(self._starts.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_abandon)
            raise

    def refusal(self, instance: str) -> None:
        """Nobody can forbid a child of ours."""

    def watch(self, instances: Iterable[str], tell: Callable[[str, News], None]) -> None:
        """Nobody else can start or stop a child of ours."""

    def view(self, spec: ServerSpec) -> dict[str, Any]:
        return spec.process_view(units=False)

    async def usage(self, running: Iterable[str]) -> Mapping[str, Usage]:
        del running  # they have no cgroup of their own
        return {}

    def unkept(self, spec: ServerSpec) -> list[str]:
        return unkept(spec)

    async def close(self) -> None:
        self._closing = True
        if self._starts:
            await asyncio.wait(self._starts, timeout=LAUNCH_TIMEOUT)
        await asyncio.gather(*(process.stop(0) for process in list(self._processes.values())))
        await self._watch.close()
        await self._removal.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _start(self, spec: ServerSpec, command: Command, slot: str) -> ServerProcess:
        if slot:
            self._removal.sweep()
        loop = asyncio.get_running_loop()
        spawned = await loop.run_in_executor(self._pool, self._launch, spec, command, slot)
        # From here to the entry no await: a cancellation in between would lose a process.
        redact = Redactor(_secrets(spec, command))
        stderr = Stderr(
            spawned.stderr_fd,
            lambda line: self._log(spec.instance, line),
            redact,
            lambda count: self.dropped_lines.update({spec.instance: count}),
        )
        clear = partial(self._clear, slot)
        process = ServerProcess(spawned, self._mains, stderr, redact, clear)
        self._processes[process.invocation] = process
        return process

    def _launch(self, spec: ServerSpec, command: Command, slot: str) -> Spawned:
        if not command.argv or not PurePath(command.argv[0]).is_absolute():
            raise refused("the first word of its command is not an absolute path")
        with self._preparing:
            home = identity.prepare(self._state_dir, spec)
            if slot:
                home = identity.workspace(self._state_dir, home, slot)
        kin = Kin(secrets.token_hex(16), identity.unshared(home.uid), spec.limits.memory)
        order = Order(
            argv=command.argv,
            env=environment(spec, command, home.path, kin.invocation),
            home=home,
            cwd=home.path if spec.cwd is None else Path(spec.cwd),
            open_files=spec.limits.open_files,
            kin=kin,
        )
        # Before there is a process, so that no child of it is ever taken for another's.
        self._watch.kin[kin.invocation] = kin
        try:
            return spawn(order, self._mains)
        except BaseException:
            del self._watch.kin[kin.invocation]
            raise

    async def _clear(self, slot: str, kin: Kin) -> None:
        await self._watch.clear(kin)
        if slot:
            self._removal.remove(slot)
        del self._processes[kin.invocation]

    def _exceeded(self, invocation: str, figures: str) -> None:
        process = self._processes.get(invocation)
        if process is not None:
            process.exceed(figures)


def _abandon(start: asyncio.Task[ServerProcess]) -> None:
    """End a process that nobody waits for any more."""
    if start.cancelled() or start.exception() is not None:
        return
    process = start.result()
    os.close(process.stdin_fd)
    os.close(process.stdout_fd)
    process.end()


def _secrets(spec: ServerSpec, command: Command) -> list[str]:
    values = {**command.env, **spec.env}
    found = [values[name] for name in values if name in spec.env or name in spec.credentials]
    return [*found, *(each.text for each in spec.headers.values() if each.text is not None)]


def _labelled(logger: logging.Logger) -> Log:
    def log(instance: str, line: str) -> None:
        logger.info("%s: %s", instance, line, extra={"MCP_INSTANCE": instance})

    return log
