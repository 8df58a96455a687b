"""The systemd runtime: connect is start, the end of a pipe is the end."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.model.death import Death, DeathCause
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.redact import Redactor
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.unit_result import UnitResult
from autobot_mcp_bridge.runtimes.base import Adopted, Command, News, StartError
from autobot_mcp_bridge.runtimes.systemd import handover
from autobot_mcp_bridge.runtimes.systemd.ends import Ends
from autobot_mcp_bridge.runtimes.systemd.handover import Handed
from autobot_mcp_bridge.runtimes.systemd.kept import KeptPipes, view_of
from autobot_mcp_bridge.runtimes.systemd.process import UnitProcess
from autobot_mcp_bridge.runtimes.systemd.usage import UnitUsage
from autobot_mcp_bridge.supervision.bus import SYSTEM_BUS, BusError
from autobot_mcp_bridge.supervision.cgroups import Cgroups, Usage
from autobot_mcp_bridge.supervision.ended import FOLDER, WITHIN
from autobot_mcp_bridge.supervision.journal import Forgetful, Storeless
from autobot_mcp_bridge.supervision.unit_events import (
    Changed,
    Ended,
    Event,
    OperatorStop,
    Started,
)
from autobot_mcp_bridge.supervision.unit_paths import Kind
from autobot_mcp_bridge.supervision.unit_state import UnitState
from autobot_mcp_bridge.supervision.watcher import Watcher

# At most so many connects to one instance within so many seconds: the socket unit's own limit
# (TriggerLimitBurst=10 in 4 s) is left to set-ups that fail.
CONNECTS, CONNECTS_WITHIN = 4, 2.0
# After a set-up that failed its limit counts on, also for a socket that was started again (257,
# measured): the next connect would fail without any start.
LIMIT_WITHIN = 4.0
# A socket that had failed listens again this long after its start was asked for.
REVIVE_WITHIN = 5.0
# At the proxy's start the bus tells a unit's state within this, or the pipes alone decide.
STATE_WITHIN = 5.0
# Ids toward an adopted server begin at its proxy's generation times this; all of them stay below
# 2^53, which JSON numbers keep everywhere.
NUMBERS = 1 << 32
GENERATIONS = 1 << 20

STOPPED = "the server was stopped by the operator"

log = logging.getLogger(__name__)


class SystemdRuntime:
    """Implements `Runtime` of runtimes/base.py; to be made where an event loop runs.

    Args:
        sockets: where the instances' sockets lie.
        ended: where the last words lie.
        bus: the system bus's socket.
        library: of D-Bus; see supervision/bus_library.py.
        kept: the pipes that the proxy before has left, and where those for the next one go.
        generation: another number for each proxy.

    Raises:
        BusUnavailableError: no library for D-Bus is installed.
    """

    name = "systemd"

    def __init__(
        self,
        sockets: Path = Path("/run/mcp-bridge"),
        *,
        ended: Path = FOLDER,
        bus: str = SYSTEM_BUS,
        library: str | None = None,
        kept: KeptPipes | None = None,
        generation: int = 0,
    ) -> None:
        self.dropped_lines: Mapping[str, int] = {}  # the journal has its own limits
        self._sockets = sockets
        self._kept = kept if kept is not None else KeptPipes(Storeless(), Forgetful())
        self._first_number = (generation % GENERATIONS) * NUMBERS + 1
        self._ending: set[asyncio.Task[None]] = set()
        self._watcher = Watcher(self._heard, path=bus, library=library)
        self._ends = Ends(lambda: self._watcher.is_connected, ended)
        self._watching = asyncio.create_task(self._watcher.run(), name="watch units")
        self._usage = UnitUsage(self._watcher, Cgroups())
        self._tell: Callable[[str, News], None] = lambda _instance, _news: None
        self._news = asyncio.Event()  # set, and replaced, at every event
        self._starting: set[str] = set()
        self._seen: set[str] = set()  # whose service's state was told of
        self._silent: set[str] = set()  # whose socket did not listen when it was last told of
        self._stopped_sockets: set[str] = set()  # by the operator
        self._failed: set[str] = set()
        self._newest: dict[str, str] = {}  # instance to the invocation that began last
        self._last_end: dict[str, Ended] = {}
        self._given_up: dict[str, float] = {}
        self._connects: dict[str, deque[float]] = {}
        self._loop = asyncio.get_running_loop()
        for invocation in self._kept.broken:
            self._stop_after(0.0, "", invocation)

    def watch(self, instances: Iterable[str], tell: Callable[[str, News], None]) -> None:
        self._tell = tell
        kept = set(instances)
        self._watcher.watch(kept)
        for known in (self._newest, self._last_end, self._given_up, self._connects):
            for gone in set(known) - kept:
                known.pop(gone)
        for some in (self._seen, self._silent, self._stopped_sockets, self._failed):
            some.intersection_update(kept)
        for handed in self._kept.others(kept):
            self._end("", handed, 0.0)

    async def known(self) -> None:
        """Wait until every watched unit's state is known; not bounded, the bus may be away."""
        await self._watcher.settled()

    async def ends_for_good(self, unit: str) -> bool:
        """Whether the unit that this process is stops, and is not restarted; bounded."""
        return await self._watcher.job_of(unit) == "stop"

    async def adopt(self, spec: ServerSpec) -> Adopted | None:
        left = self._kept.take(spec.instance)
        if left is None:
            return None
        invocation, hello = left.handed.invocation, left.hello
        with suppress(TimeoutError):
            async with asyncio.timeout(STATE_WITHIN):
                await self._until(lambda: self._watcher.state(spec.instance) is not None)
        state = self._watcher.state(spec.instance)
        runs = state is None or (state.invocation == invocation and not state.over)
        if not runs or left.ended or hello is None:
            self._end(spec.instance, left.handed, spec.timeouts.stop)
            return None
        self._newest[spec.instance] = invocation
        # It has been read by now; whoever comes next is not to read it twice.
        self._kept.rest(spec.instance, left.handed, b"")
        redact, view = Redactor(spec.env.values()), view_of(spec)
        process = UnitProcess(
            left.handed, spec.instance, self._watcher, self._ends, redact, self._kept, left.view
        )
        _say(spec.instance, f"its unit goes on, pid {process.pid}")
        return Adopted(
            process, hello, left.rest, left.torn, self._first_number, current=left.view == view
        )

    def _end(self, instance: str, handed: Handed, grace: float) -> None:
        """Let go of a channel that nobody goes on with; its server ends by that, or is stopped."""
        handed.close()
        self._kept.release(instance, handed.invocation)
        self._stop_after(grace, instance, handed.invocation)

    def _stop_after(self, grace: float, instance: str, invocation: str) -> None:
        async def end() -> None:
            await asyncio.sleep(grace)
            await self.known()  # the proxy has just started, and may have no bus yet
            with suppress(BusError):  # it has ended, mostly
                await self._watcher.stop(instance, invocation)

        task = asyncio.create_task(end(), name=f"end {instance}")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def start(self, spec: ServerSpec, command: Command, slot: str = "") -> UnitProcess:
        del command, slot  # apply has put the command into the unit, of which there is one
        redact = Redactor(spec.env.values())
        before = self._last_end.get(spec.instance)
        self._starting.add(spec.instance)
        try:
            async with asyncio.timeout(spec.timeouts.start):
                handed = await self._fetch(spec.instance)
        except TimeoutError:
            await self._stop_silent(spec.instance)
            detail = "no hello of its launcher"
            raise StartError(Death(DeathCause.START_TIMEOUT, detail=detail)) from None
        except handover.GivenUpError:
            self._given_up[spec.instance] = self._loop.time()
            raise StartError(await self._failed_setup(spec.instance, before, redact)) from None
        except handover.LaunchError as error:
            raise StartError(Death(DeathCause.EXEC, detail=redact(str(error)))) from None
        except handover.HandoverError as error:
            raise StartError(Death(DeathCause.RESOURCES, detail=str(error))) from None
        finally:
            self._starting.discard(spec.instance)
        self._newest[spec.instance] = handed.invocation
        view = view_of(spec)
        self._kept.keep(spec.instance, handed, view)
        return UnitProcess(
            handed, spec.instance, self._watcher, self._ends, redact, self._kept, view
        )

    @property
    def unread(self) -> int:
        return self._usage.errors

    async def usage(self, running: Iterable[str]) -> Mapping[str, Usage]:
        return await self._usage.read(running)

    def view(self, spec: ServerSpec) -> dict[str, Any]:
        return spec.process_view(units=True)

    def unkept(self, spec: ServerSpec) -> list[str]:  # noqa: ARG002 - apply refuses what it cannot keep
        return []

    async def close(self) -> None:
        self._watching.cancel()
        for task in self._ending:
            task.cancel()
        await asyncio.gather(self._watching, *self._ending, return_exceptions=True)

    # ---- starting ----

    async def _fetch(self, instance: str) -> Handed:
        self._refuse(instance)
        path = self._sockets / f"{instance}.sock"
        await self._pace(instance)
        try:
            return await handover.fetch(path)
        except handover.NotListeningError:
            await self._revive(instance)
            return await handover.fetch(path)

    async def _pace(self, instance: str) -> None:
        recent = self._connects.setdefault(instance, deque(maxlen=CONNECTS))
        by = self._given_up.get(instance, 0.0) + LIMIT_WITHIN
        if len(recent) == CONNECTS:
            by = max(by, recent[0] + CONNECTS_WITHIN)
        await asyncio.sleep(max(0.0, by - self._loop.time()))
        recent.append(self._loop.time())

    async def _stop_silent(self, instance: str) -> None:
        """End a unit that accepts no connection: a server that its proxy has lost."""
        state = self._watcher.state(instance)
        if state is not None and state.invocation and not state.over:
            with suppress(BusError):
                await self._watcher.stop(instance, state.invocation)

    def refusal(self, instance: str) -> CallError | None:
        states = (self._watcher.state(instance, kind) for kind in Kind)
        if any(state is not None and state.masked for state in states):
            return CallError(Cause.MASKED, "the server's unit is masked", retry_after=60)
        socket = self._watcher.state(instance, Kind.SOCKET)
        if socket is None or (socket.load_state, socket.active) != ("loaded", "inactive"):
            return None
        if self._may_revive(instance, socket):
            return None
        return CallError(Cause.STOPPED, STOPPED, retry_after=30)

    def _refuse(self, instance: str) -> None:
        refusal = self.refusal(instance)
        if refusal is not None:
            raise refusal

    async def _revive(self, instance: str) -> None:
        """Have a socket listen that failed set-ups have stopped; any other is left alone.

        Raises:
            CallError: it may not be started.
        """
        state = self._watcher.state(instance, Kind.SOCKET)
        if state is None or not self._watcher.is_connected:
            raise CallError(Cause.NO_UNIT, "systemd cannot be asked for its unit", retry_after=5)
        if state.load_state == "not-found":
            what = "its units are not there; `mcp-bridge apply` makes them"
            raise CallError(Cause.NO_UNIT, what, retry_after=5)
        if not self._may_revive(instance, state):
            raise CallError(Cause.STOPPED, STOPPED, retry_after=30)
        try:
            await self._watcher.start(instance, Kind.SOCKET)
        except BusError as error:
            what = f"its socket cannot be started: {error}"
            raise CallError(Cause.NO_UNIT, what, retry_after=5) from None
        async with asyncio.timeout(REVIVE_WITHIN):
            await self._until(lambda: _listens(self._watcher.state(instance, Kind.SOCKET)))

    def _may_revive(self, instance: str, state: UnitState) -> bool:
        if state.active == "failed":
            return True
        # An enabled socket rests without anybody's stop where its start was refused: at a boot
        # with its service masked (252 and 257, measured).
        return state.file_state == "enabled" and instance not in self._stopped_sockets

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for what the bus tells; not bounded."""
        while not condition():
            await self._news.wait()

    async def _failed_setup(self, instance: str, before: Ended | None, redact: Redactor) -> Death:
        """Why the last invocation came to no hello; all of one connect are one crash."""
        with suppress(TimeoutError):
            async with asyncio.timeout(WITHIN):
                await self._until(lambda: self._last_end.get(instance) is not before)
        # The last start of all was called off when the socket failed, and says nothing.
        ended = self._last_end.get(instance)
        if ended is None or ended is before:
            self._refuse(instance)
            return Death(DeathCause.RESOURCES, detail="its unit could not be set up")
        words = await self._ends.words(instance, ended.invocation)
        how = UnitResult(ended.result, ended.code, ended.status)
        return words.death(redact) if words is not None else how.death()

    # ---- what the bus tells ----

    def _heard(self, event: Event) -> None:
        self._news.set()
        self._news = asyncio.Event()
        match event:
            case Started(instance, invocation):
                foreign = instance not in self._starting and (
                    self._newest.get(instance) != invocation
                )
                self._newest[instance] = invocation
                if foreign:
                    _say(instance, "its unit was started by hand")
                    self._tell(instance, News.STARTED)
            case Ended(instance):
                self._last_end[instance] = event
                self._ends.tell(event)
            case OperatorStop(instance, kind):
                if kind is Kind.SOCKET:
                    self._stopped_sockets.add(instance)
                _say(instance, "its unit was stopped by the operator")
                self._tell(instance, News.STOPPED)
            case Changed(instance, Kind.SOCKET, state):
                self._socket(instance, state)
            case Changed(instance, Kind.SERVICE, state):
                if instance not in self._seen:
                    self._seen.add(instance)
                    self._found(instance, state)
                self._service(instance, state)

    def _service(self, instance: str, state: UnitState) -> None:
        """`systemctl reset-failed` takes `failed` away without any job."""
        if state.active == "failed":
            self._failed.add(instance)
        elif instance in self._failed:
            self._failed.discard(instance)
            if state.active == "inactive" and not state.job:
                self._tell(instance, News.RESET)

    def _found(self, instance: str, state: UnitState) -> None:
        """How the unit was when we came; one that no proxy has had was started by hand."""
        runs = bool(state.invocation) and not state.over
        if not runs or instance in self._starting:
            return
        if state.invocation in {self._newest.get(instance), *self._kept.known(instance)}:
            return
        self._newest[instance] = state.invocation
        _say(instance, "its unit was started by hand")
        self._tell(instance, News.STARTED)

    def _socket(self, instance: str, state: UnitState) -> None:
        if not _listens(state):
            self._silent.add(instance)
            return
        self._stopped_sockets.discard(instance)
        if instance in self._silent:
            self._silent.discard(instance)
            self._tell(instance, News.LISTENING)


def _say(instance: str, what: str) -> None:
    log.info("%s: %s", instance, what, extra={"MCP_INSTANCE": instance})


def _listens(state: UnitState | None) -> bool:
    return state is not None and state.active == "active"
