"""What the watcher tells: plain records, in the order in which it happened."""

from dataclasses import dataclass

from autobot_mcp_bridge.model.unit_result import UnitResult
from autobot_mcp_bridge.supervision.unit_paths import Kind
from autobot_mcp_bridge.supervision.unit_state import UnitState


@dataclass(frozen=True, slots=True)
class Changed:
    """A service's or a socket's state is another one; told for every difference."""

    instance: str
    kind: Kind
    state: UnitState


@dataclass(frozen=True, slots=True)
class Started:
    """A new invocation, whoever has asked for it: the proxy, a client of the socket, a person."""

    instance: str
    invocation: str


@dataclass(frozen=True, slots=True)
class Ended:
    """An invocation is over; told exactly once for each.

    Attributes:
        result: systemd's Result, "" when its signals were missed: the last words know it.
        code: 1 exited, 2 killed, 3 dumped core (siginfo's CLD_*); 0 unknown, or no process.
        status: the exit status or the signal's number.
        asked_by_job: a stop or restart job ended it; else it went by itself, whatever the result.
        ours: that job is one of those that `Watcher.stop` or `claim` knows.
    """

    instance: str
    invocation: str
    result: str = ""
    code: int = 0
    status: int = 0
    asked_by_job: bool = False
    ours: bool = False

    @property
    def how(self) -> UnitResult:
        """What that says about the cause; the last words know of the v1 controllers' OOM kills."""
        return UnitResult(self.result, self.code, self.status)


@dataclass(frozen=True, slots=True)
class OperatorStop:
    """Somebody else has stopped the service or its socket, which may have been at rest already.

    It holds until the next `Started`, or for a socket until it is active again. A try-restart of a
    unit at rest, which does nothing, looks the same on the bus (measured) and is taken for a stop.
    """

    instance: str
    kind: Kind


Event = Changed | Started | Ended | OperatorStop
