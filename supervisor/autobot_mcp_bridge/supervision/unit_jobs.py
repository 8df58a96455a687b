"""The jobs on one unit, and what they say about its end.

systemd signals a job's id but not its type, which has to be asked for; a short job is over by
then. What is known without it: a start of a unit that runs is over at once and changes nothing, so
a job that was queued on a running unit and is there at its end has stopped it. A job that came
when the process was gone already (`deactivating` with stop-post, `failed`) has not.
"""

from dataclasses import dataclass

from autobot_mcp_bridge.supervision.unit_state import REST

RUNS = frozenset({"active", "reloading", "refreshing"})
_ENDING = frozenset({"stop", "restart", "try-restart"})
# A restart has become a `start` in its second half.
_MAY_HAVE_ENDED = frozenset({"", "start", *_ENDING})


@dataclass(slots=True)
class Job:
    """A job that is queued or runs.

    Attributes:
        invocation: the unit's invocation when the job was seen first.
        began: the unit's ActiveState then; "" when it was seen too late for that.
        type: JobType; "" when it is not known yet, or systemd no longer knew it.
        ours: whether we have queued it.
        maybe: `ours` is assumed, until the call that is under way is answered.
        told: whether somebody has been told of this operator's stop.
    """

    id: int
    invocation: str
    began: str
    type: str = ""
    ours: bool = False
    maybe: bool = False
    told: bool = False

    def has_ended(self, invocation: str) -> bool | None:
        """Tell whether it is why an invocation is over; None: its type is needed for that."""
        if self.invocation != invocation or self.began == "deactivating" or self.began in REST:
            return False
        if self.began in RUNS:
            return self.type in _MAY_HAVE_ENDED
        return self.type in _ENDING if self.type else None

    def was_stop(self, result: str, invocation: str, *, at_rest: bool) -> bool:
        """Tell of a job that is gone whether it has stopped the unit for good.

        A start that is `done` has made a new invocation.
        """
        if result != "done":
            return False
        if self.type:
            return self.type == "stop"
        return at_rest and invocation == self.invocation
