"""One unit as its signals tell of it: a state machine without input or output."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from autobot_mcp_bridge.supervision.unit_events import (
    Changed,
    Ended,
    Event,
    OperatorStop,
    Started,
)
from autobot_mcp_bridge.supervision.unit_jobs import RUNS, Job
from autobot_mcp_bridge.supervision.unit_paths import Kind, unit_of
from autobot_mcp_bridge.supervision.unit_state import UnitState

_REMEMBERED = 8  # ended invocations, of which systemd knows one, and jobs that are not seen yet
_STOP = "stop"


class WatchedUnit:
    """Turns repeated, coalesced and missed signals into one event each.

    Args:
        tell: gets the events; may not raise.
        ask: is to find out the type of a job and then call `job_typed`.
    """

    def __init__(
        self,
        instance: str,
        kind: Kind,
        tell: Callable[[Event], None],
        ask: Callable[["WatchedUnit", int], None],
    ) -> None:
        self.instance = instance
        self.kind = kind
        self.name = unit_of(instance, kind)
        self.state: UnitState | None = None  # None until it is read for the first time
        self.version = 0  # counts what was signalled, so that a slow read can tell it is outdated
        self.doubtful = False  # is to be read again
        self._tell = tell
        self._ask = ask
        self._next: UnitState | None = None
        self._invocation = ""
        self._over = True
        self._ended: deque[str] = deque(maxlen=_REMEMBERED)
        self._held: Ended | None = None  # waits for the type of a job
        self._jobs: dict[int, Job] = {}
        self._own_calls = 0
        self._claimed: deque[int] = deque(maxlen=_REMEMBERED)

    # States.

    def signalled(self, properties: Mapping[str, Any], *, whole: bool) -> None:
        self.version += 1
        if self.state is None:
            return  # what is read soon has it
        self._next = (self._next or self.state).merged(properties)
        if whole:
            self._become(self._next)

    def read(self, properties: Mapping[str, Any]) -> None:
        """Take everything that systemd says; the first time that is where it begins."""
        new = UnitState().merged(properties)
        self.doubtful = False
        # Jobs that went while systemd executed itself anew were never told of.
        self._jobs = {number: job for number, job in self._jobs.items() if number == new.job}
        if self.state is None:
            self.state = new
            self._invocation, self._over = new.invocation, new.over
            if new.invocation and new.over:
                self._ended.append(new.invocation)
            if new.job:
                self._see(new.job, "")
            self._tell(Changed(self.instance, self.kind, new))
        else:
            self._become(new)
        self._judge()

    def unloaded(self) -> None:
        """Take note that systemd has forgotten it, as it does with each unit that is inactive.

        When systemd executes itself anew it says so of every unit, also of those that run (252 and
        257, measured): such a one is to be read again.
        """
        self.version += 1
        if self.state is None:
            return
        if self.state.active == "inactive" and self._over:
            old = self.state
            self._become(UnitState(load_state=old.load_state, file_state=old.file_state))
        else:
            self.doubtful = True

    def lost(self) -> None:
        """The bus has ended: what is known of jobs is worth nothing."""
        self._next = None
        self._jobs.clear()
        self._release()

    def _become(self, new: UnitState) -> None:
        old, self.state, self._next = self.state, new, None
        if new == old:
            return
        if new.job:
            # Before JobNew the unit is signalled with the job, mostly before that has begun
            # (dbus-job.c, bus_job_send_change_signal; measured).
            self._see(new.job, new.active if new.active in RUNS else "")
        self._tell(Changed(self.instance, self.kind, new))
        if self.kind is Kind.SERVICE:
            self._follow(new)

    def _follow(self, new: UnitState) -> None:
        if new.invocation != self._invocation:
            if not self._over:  # its end was coalesced with this start, or missed
                self._end(Ended(self.instance, self._invocation))
            self._release()
            self._invocation = new.invocation
            self._over = not new.invocation or new.invocation in self._ended
            if not self._over:
                self._tell(Started(self.instance, new.invocation))
        if not self._over and new.over:
            end = (new.result, new.main_code, new.main_status)
            self._end(Ended(self.instance, new.invocation, *end))

    def _end(self, ended: Ended) -> None:
        self._over = True
        self._ended.append(ended.invocation)
        self._held = ended
        self._judge()

    def _judge(self) -> None:
        """Tell of the end that is held as soon as it is clear whether a job is behind it."""
        if self._held is None:
            return
        unclear = False
        for job in self._jobs.values():
            verdict = job.has_ended(self._held.invocation)
            if verdict:
                self._release(job)
                return
            unclear = unclear or verdict is None
        if not unclear:
            self._release()

    def _release(self, job: Job | None = None) -> None:
        held, self._held = self._held, None
        if held is not None:
            asked, ours = job is not None, job is not None and job.ours
            self._tell(
                Ended(
                    held.instance,
                    held.invocation,
                    held.result,
                    held.code,
                    held.status,
                    asked_by_job=asked,
                    ours=ours,
                )
            )

    # Jobs.

    def is_asked_to_end(self, invocation: str) -> bool:
        """Whether a job is known that ends it, before its end is told."""
        return any(job.has_ended(invocation) for job in self._jobs.values())

    def job_new(self, number: int) -> None:
        self._see(number, self.state.active if self.state is not None else "")

    def _see(self, number: int, began: str) -> None:
        known = self._jobs.get(number)
        if known is None:
            maybe = self._own_calls > 0
            ours = maybe or number in self._claimed
            self._jobs[number] = Job(number, self._invocation, began, ours=ours, maybe=maybe)
            self._ask(self, number)

    def job_typed(self, number: int, job_type: str) -> None:
        """Take a job's type, "" when systemd does not know the job any more."""
        job = self._jobs.get(number)
        if job is not None:
            job.type = job_type
            self._judge()
            if job_type == _STOP:
                self._stopped(job)

    def job_removed(self, number: int, result: str) -> None:
        job = self._jobs.get(number)
        if job is None:
            return
        # Of a unit that was not read yet nothing tells a short start from a stop.
        at_rest = self.state is not None and self.state.at_rest
        stop = job.was_stop(result, self._invocation, at_rest=at_rest)
        if stop and not job.type:
            job.type = _STOP
        self._judge()
        del self._jobs[number]
        self._judge()
        if stop:
            self._stopped(job)

    def _stopped(self, job: Job) -> None:
        if not job.ours and not job.told:
            job.told = True
            self._tell(OperatorStop(self.instance, self.kind))

    def own_call(self) -> None:
        """A call of ours that queues a job is under way: what is queued now may be its job."""
        self._own_calls += 1

    def own_job(self, number: int) -> None:
        """Our call has queued this job; what else came meanwhile is another's."""
        own = self._jobs.get(number)
        if own is None:
            self._claimed.append(number)
        else:
            own.ours, own.maybe = True, False
        if self._own_calls > 1:
            return
        for job in self._jobs.values():
            if job.maybe:
                job.ours = job.maybe = False
                if job.type == _STOP:
                    self._stopped(job)

    def own_call_done(self) -> None:
        self._own_calls -= 1
