"""The state machine of one server: one task, one process at a time, started when somebody calls.

    sleeping ─▶ waiting ─▶ starting ─▶ ready ─▶ stopping ─▶ sleeping
                   └───────────┴─────────┴──▶ (a crash) ─▶ sleeping, or broken: the breaker is open

A crash is an end that nobody asked for, before the server was ready or with a call open, whatever
its code; any end but a clean exit at any time; a start timeout.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.channels.ends import broken, crashed, death_of, resting, too_late
from autobot_mcp_bridge.channels.greeting import RefusedError, WrongEraError, unless_ended
from autobot_mcp_bridge.channels.hooks import Hooks
from autobot_mcp_bridge.channels.waiters import Waiters
from autobot_mcp_bridge.model.death import Death, DeathCause
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.model.versions import Era, era_of
from autobot_mcp_bridge.runtimes.base import Adopted, Command, Process, Runtime, StartError
from autobot_mcp_bridge.supervision.breaker import Breaker, BreakerState

# So many deadlines in a row without any answer make a server unresponsive.
MAX_SILENT_DEADLINES = 3
# Restoring sessions in a new process must not hold up its first call for longer.
RESTORE_TIMEOUT = 5.0
# A warm server that keeps crashing is started again after at least so long.
WARM_PAUSE = 1.0
# Processes of one start: one that is asked for its era, and one for each answer.
MAX_PROCESSES = 3
# What is left for the last of them at least, in seconds.
MIN_START = 1.0
# While a restart waits for open calls to end, they are looked at so often.
DRAIN_POLL = 0.1
FAULT = "a fault of the proxy, whose log tells more"

log = logging.getLogger(__name__)


class Instance:
    """Keeps one server's process. `run` is its only task; everything else only asks it."""

    def __init__(
        self,
        spec: ServerSpec,
        runtime: Runtime,
        commands: Callable[[ServerSpec], Command],
        hooks: Hooks,
        max_calls: int,
        *,
        lead: "Instance | None" = None,
        slot: Callable[[], str] = str,  # names each process that is not a server's only one
    ) -> None:
        self.spec = spec
        self.state = State.SLEEPING
        self.breaker: Breaker = (
            Breaker(spec.breaker, hooks.changed) if lead is None else lead.breaker
        )
        self.max_calls = max_calls
        # Its initialize or server/discover result, kept while it sleeps.
        self.hello: dict[str, Any] | None = None
        self.era: Era | None = None  # how it is spoken to; None: to be asked of its next process
        self.last_death: Death | None = None
        self.process: Process | None = None
        self.began = 0.0  # when it became ready
        self._runtime = runtime
        self._commands = commands
        self._hooks = hooks
        self._slot = slot
        self._channel: Channel | None = None
        self._waiters = Waiters()
        self._start_by = 0.0
        self._attention = asyncio.Event()
        self._stopped = False
        self._retired = False
        self._probes = False  # its start is the breaker's one trial
        self._restart_by: float | None = None
        self._loop = asyncio.get_running_loop()

    # ---- for callers ----

    @property
    def channel(self) -> Channel | None:
        """The channel of a process that can be called right now."""
        channel = self._channel
        return channel if channel is not None and channel.usable else None

    @property
    def awaited(self) -> bool:
        """Whether its start is waited for."""
        return len(self._waiters) > 0

    async def ready(self) -> Channel:
        """A channel that can be called, starting the server if it sleeps.

        Raises:
            CallError: it may not be started, or could not be.
        """
        channel = self.channel
        if channel is not None:
            if len(channel.pending) >= self.max_calls:
                raise CallError(Cause.QUEUE_FULL, "too many calls are in flight", retry_after=1)
            return channel
        # One start may have to wait for one stop; each is bounded by its own timeout.
        timeouts = self.spec.timeouts
        try:
            async with asyncio.timeout(timeouts.start + timeouts.stop + 2 * RESTORE_TIMEOUT):
                # What was ready when the waiter was woken may be gone by the time it runs.
                while (channel := self.channel) is None:
                    await self._wait_for_start()
                return channel
        except TimeoutError:
            raise CallError(Cause.START_FAILED, "the server did not become ready in time") from None

    async def _wait_for_start(self) -> None:
        self.check_startable()
        if len(self._waiters) >= self.max_calls:
            raise CallError(Cause.QUEUE_FULL, "too many calls wait for the start", retry_after=1)
        self._attention.set()
        await self._waiters.wait()

    def check_startable(self) -> None:
        """Raise CallError if a call would be refused without any contact with the server."""
        if self._retired:
            raise CallError(Cause.SHUTTING_DOWN, "the server is being removed", retry_after=1)
        if not self.spec.enabled:
            raise CallError(Cause.DISABLED, "the server is disabled", retry_after=60)
        if self._stopped:
            raise CallError(Cause.STOPPED, "the server was stopped by the operator", retry_after=30)
        if self.breaker.state is not BreakerState.CLOSED and not self._may_probe():
            raise broken(self.breaker, self.last_death, self._loop.time())

    def _may_probe(self) -> bool:
        if self.breaker.state is BreakerState.HALF_OPEN:
            return self.state in (State.WAITING, State.STARTING, State.READY)
        return self.breaker.settings.probe and self.breaker.retry_after(self._loop.time()) <= 0

    # ---- for operators and the configuration ----

    def memo(self) -> list[Any]:
        """What the next proxy is to know, besides the process."""
        return [self._stopped, self.breaker.dump(), self.era]

    def recall(self, memo: object) -> None:
        """Go on where an earlier proxy was; what is no memo changes nothing."""
        match memo:
            case [bool(stopped), breaker, *rest]:
                self._stopped = stopped
                self.breaker.load(breaker)
                self.era = next((era for era in Era if era in rest), None)

    def _stop(self, *, stopped: bool) -> None:
        self._stopped = stopped
        self._hooks.changed()
        self._attention.set()

    def stop(self) -> None:
        """Stop it until it is started again."""
        self._stop(stopped=True)

    def start(self) -> None:
        """Let it run again, and start it now."""
        self._stop(stopped=False)
        self._want()

    def allow(self) -> None:
        """Let it run again, when somebody calls."""
        self._stop(stopped=False)

    def _want(self) -> None:
        """Have it started although no call waits for it."""
        if self._channel is None:
            self._waiters.add()
        self._attention.set()

    def reset(self) -> None:
        """Close the breaker and forget the crashes (`reset-failed`)."""
        self.breaker.reset()
        self._attention.set()

    def configure(self, spec: ServerSpec) -> None:
        """Take a new definition; a process that no longer fits is replaced between calls.

        The new one starts at once, so that sessions hear whether its tools are others.
        """
        old, self.spec = self.spec, spec
        self.breaker.configure(spec.breaker)
        if self._runtime.view(old) != self._runtime.view(spec):
            self.renew()
        self._attention.set()

    def renew(self) -> None:
        """Have the process replaced between calls, at the latest after `timeouts.call`."""
        if self._channel is None:
            self.hello = None  # else it stands until the new process has said its own
        self.era = None
        self.breaker.reset()
        self._restart_by = self._loop.time() + self.spec.timeouts.call
        self._attention.set()

    def retire(self) -> None:
        """Take no more calls; `run` returns when the open ones have ended, in bounded time."""
        self._retired = True
        self._restart_by = self._loop.time() + self.spec.timeouts.call
        self._waiters.fail(CallError(Cause.SHUTTING_DOWN, "the server is being removed"))
        self._attention.set()

    def hurry(self) -> None:
        """Do not wait for open calls any longer."""
        self._restart_by = self._loop.time()
        self._attention.set()

    def dismiss(self) -> None:
        """Retire, at once."""
        self.retire()
        self.hurry()

    def give_up_calls(self, error: CallError) -> None:
        """End the open calls, here and at the server."""
        if self._channel is not None:
            self._channel.give_up(error)
        self._waiters.fail(error)

    @property
    def flushed(self) -> bool:
        return self._channel is None or self._channel.flushed

    def leave(self) -> None:
        """Let go of the process without ending it; then `run` is to be cancelled.

        One that is not ready, or does not read, is for the next proxy to end.
        """
        if self._channel is not None:
            self._channel.leave()

    # ---- the one task ----

    async def run(self) -> None:
        """Live from definition to removal."""
        await self._adopt()
        while not self._retired:
            if not self._wanted():
                self._settle()
                self._attention.clear()
                await self._attention.wait()
                continue
            try:
                await self._live()
            finally:
                if self._probes:
                    self.breaker.left(self._loop.time())
                self._hooks.over()
            if self.spec.warm and self.last_death is not None and not self.last_death.asked:
                await self._pause(WARM_PAUSE)
        self.state = State.SLEEPING

    async def _adopt(self) -> None:
        """Go on with the process that an earlier proxy has started, if there is one."""
        self.state = State.WAITING
        adopted = await self._runtime.adopt(self.spec)
        if adopted is None:
            return
        self.hello, self.era = adopted.hello, era_of(adopted.hello)
        if not adopted.current:
            self._restart_by = self._loop.time()
        await self._hold(adopted.process, adopted)

    def _wanted(self) -> bool:
        broken = self.breaker.state is not BreakerState.CLOSED and not self._may_probe()
        wanted = self.awaited or (self.spec.warm and not broken)
        return wanted and self.spec.enabled and not self._stopped

    def _settle(self) -> None:
        """Rest: nobody waits, or whoever waits does so for a server that may not be started."""
        try:
            self.check_startable()
        except CallError as error:
            self._waiters.fail(error)
        self.state = resting(self.spec, self.breaker, stopped=self._stopped)

    async def _pause(self, seconds: float) -> None:
        self._attention.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._attention.wait()

    async def _live(self) -> None:
        """One start to its end; while the era is learnt, it takes more than one process."""
        spec = self.spec
        try:
            command = self._commands(spec)
        except CallError as error:
            await self._refused(error)
            return
        allowed = self.breaker.may_start(self._loop.time())
        self._probes = allowed and self.breaker.state is BreakerState.HALF_OPEN
        if not allowed:
            self._waiters.fail(broken(self.breaker, self.last_death, self._loop.time()))
            return
        self._restart_by = None
        self._start_by = self._loop.time() + spec.timeouts.start
        for _ in range(MAX_PROCESSES):
            self.state = State.WAITING
            self._hooks.started()
            try:
                process = await self._runtime.start(spec, command, self._slot())
            except StartError as error:
                self._crashed(error.death, ready=False)
                return
            except CallError as error:
                await self._refused(error)
                return
            if await self._hold(process):
                return
        self._crashed(
            Death(DeathCause.BROKEN_HANDSHAKE, detail="it refuses both eras"), ready=False
        )

    async def _hold(self, process: Process, adopted: Adopted | None = None) -> bool:
        """One channel from its pipes to its end; False when another process is needed for it."""
        self.process = process
        channel = await Channel.open(
            process,
            self.spec.caps,
            adopted=adopted,
            attention=self._attention,
            on_message=self._hooks.message,
            on_request=self._hooks.asked,
            on_dropped=self._hooks.dropped,
        )
        try:
            await self._through(channel, initialized=adopted is not None)
        except RefusedError:
            self._waiters.fail(CallError(Cause.START_FAILED, "it refused its client's initialize"))
            channel.close_stdin()
            await process.stop(self.spec.timeouts.stop)
        except WrongEraError as wrong:
            self.era = wrong.era
            channel.close_stdin()
            await process.stop(0)
            return False
        except Exception:
            # A fault of ours must neither leave a process behind nor start another for nothing.
            self._crashed(Death(DeathCause.UNKNOWN, detail=FAULT), ready=False, channel=channel)
            channel.close_stdin()
            await process.stop(0)
            raise
        finally:
            self._channel = None
            channel.close()
            self.process = None
        return True

    async def _refused(self, error: CallError) -> None:
        """It may not be started, which is no crash."""
        self._waiters.fail(error)
        if self.spec.warm:
            await self._pause(WARM_PAUSE)

    async def _through(self, channel: Channel, *, initialized: bool) -> None:
        """Greet, serve and end one process."""
        self.state = State.STARTING
        ready = False
        death = None if initialized else await self._greet(channel)
        if death is None:
            ready = True
            self.state = State.READY
            self.began = channel.last_used = self._loop.time()  # a long start is no idleness
            channel.first_answer = self.breaker.answered
            self._channel = channel
            if initialized:
                self._hooks.adopted(channel)
            self._waiters.wake()
            death = await self._serve(channel)
            self._channel = None
        if death is None:
            self.last_death = await self._shut_down(channel)
            channel.fail(
                CallError(Cause.STOPPED_IN_FLIGHT, "the server was stopped during the call")
            )
            if self._restart_by is not None and not self._retired:
                self._want()
            return
        # The callers first; then whatever is left of it, which must not outlive its channel.
        self._crashed(death, ready=ready, channel=channel)
        self.state = State.STOPPING
        channel.close_stdin()
        await channel.process.stop(0)

    async def _greet(self, channel: Channel) -> Death | None:
        """Say the first words; None when the server is ready.

        Raises:
            WrongEraError: they are for another process to hear.
        """
        self._attention.clear()
        left = max(self._start_by - self._loop.time(), MIN_START)
        try:
            async with asyncio.timeout(left):
                hello = await unless_ended(channel, self._hooks.greet(channel, self.era, left))
        except TimeoutError:
            # The next start does not begin with the question, which may have silenced it; or does.
            self.era = Era.HANDSHAKE if self.era is None else None
            return too_late(channel, self.spec.timeouts.start)
        except CallError as error:
            if channel.usable:
                self.era = None  # what was known of it counts no more
                return Death(DeathCause.BROKEN_HANDSHAKE, detail=str(error))
            hello = None
        if hello is None:
            death = await death_of(channel)
            if self.era is None and not death.asked:
                raise WrongEraError(Era.HANDSHAKE)  # the question alone may have ended it
            return death
        # One that is to be replaced tells nothing about the next.
        self.hello, self.era = hello, None if self._restart_by else era_of(hello)
        self._hooks.changed()
        channel.process.greeted(hello)
        try:
            async with asyncio.timeout(RESTORE_TIMEOUT):
                await unless_ended(channel, self._hooks.restored(channel))
        except (TimeoutError, CallError):
            log.warning("%s: sessions could not be restored in time", self.spec.instance)
        return None if channel.usable else await death_of(channel)

    async def _serve(self, channel: Channel) -> Death | None:
        """Wait until the process ends (its death) or should end (None)."""
        while True:
            self._attention.clear()
            if not channel.usable:
                return await death_of(channel)
            if channel.silent_deadlines >= MAX_SILENT_DEADLINES:
                return Death(DeathCause.UNRESPONSIVE)
            now = self._loop.time()
            if self._stopped or not self.spec.enabled:
                return None
            if self._restart_by is not None and (not channel.pending or now >= self._restart_by):
                return None
            wait = self._until_idle(channel, now)
            if wait is not None and wait <= 0:
                return None
            if self._restart_by is not None:
                wait = DRAIN_POLL
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._attention.wait()

    def idle_in(self, now: float) -> float | None:
        """Seconds until it is stopped if nobody calls; None: it does not run, or never is."""
        return self._until_idle(self._channel, now) if self._channel is not None else None

    def _until_idle(self, channel: Channel, now: float) -> float | None:
        """Seconds until the server has been idle for long enough; None: never."""
        idle = self.spec.timeouts.idle
        if self.spec.warm or idle == 0:
            return None
        if channel.pending or len(self._waiters):
            return idle
        return channel.last_used + idle - now

    async def _shut_down(self, channel: Channel) -> Death:
        """The protocol's own shutdown: close stdin, wait, then signals (H4)."""
        self.state = State.STOPPING
        channel.close_stdin()
        death = await channel.process.stop(self.spec.timeouts.stop)
        # An end after we closed stdin is never a crash, whatever its code.
        return Death(death.cause, death.status, death.detail, death.last_words, asked=True)

    def _crashed(self, death: Death, *, ready: bool, channel: Channel | None = None) -> None:
        """Book an end that nobody asked for and tell everybody who waits."""
        self.last_death = death
        if death.asked:
            # An operator's stop or restart is no crash, whatever it interrupted.
            error = CallError(Cause.STOPPED_IN_FLIGHT, "the server was stopped by the operator")
            self._fail(error, channel)
            return
        open_calls = len(channel.pending) if channel is not None else 0
        if ready and death.clean and not open_calls:
            return
        self.breaker.crashed(self._loop.time())
        self._hooks.crashed(death)
        fields = {"MCP_INSTANCE": self.spec.instance, "MCP_CAUSE": death.cause.value}
        log.warning("%s: %s", self.spec.instance, death.describe(), extra=fields)
        error = crashed(death, ready=ready)
        if not ready:
            self._fail(error, channel)
        elif channel is not None:
            channel.fail(error)

    def _fail(self, error: CallError, channel: Channel | None) -> None:
        if channel is not None:
            channel.fail(error)
        self._waiters.fail(error)
