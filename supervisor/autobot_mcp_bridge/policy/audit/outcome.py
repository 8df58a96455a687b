"""How a call has ended, in the words of the record."""

from enum import StrEnum

from autobot_mcp_bridge.model.errors import Cause


class Status(StrEnum):
    """Each call has exactly one."""

    OK = "ok"
    BLOCKED = "blocked"  # refused, and the server has not seen it
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"  # by its client, or because that has gone


class Event(StrEnum):
    """What a line tells of; the first three are of calls."""

    CALL = "tool_call"
    VIOLATION = "scope_violation"
    FAILURE = "tool_error"
    STARTED = "audit_started"
    GAP = "audit_gap"
    UNAUTHORIZED = "unauthorized_burst"


# The event and level of a call with each status: a refusal is a warning, as is a failure.
TOLD = {
    Status.OK: (Event.CALL, "info"),
    Status.BLOCKED: (Event.VIOLATION, "warning"),
    Status.ERROR: (Event.FAILURE, "warning"),
    Status.TIMEOUT: (Event.FAILURE, "warning"),
    Status.CANCELLED: (Event.CALL, "info"),
}
OF_CALLS = frozenset({Event.CALL, Event.VIOLATION, Event.FAILURE})

SESSION_UNKNOWN = "session_unknown"
CLIENT_GONE = "client_gone"
REFUSED = "refused"
INTERNAL = Cause.INTERNAL.word

# Refused before its server was asked for anything.
_BLOCKED = frozenset(
    {
        *(Cause.INSTALLING, Cause.INSTALL_FAILED, Cause.CREDENTIAL_MISSING, Cause.DISABLED),
        *(Cause.STOPPED, Cause.BREAKER_OPEN, Cause.MASKED, Cause.NO_UNIT, Cause.QUEUE_FULL),
        *(Cause.TOO_MANY_SESSIONS, Cause.AUDIT_UNAVAILABLE, Cause.BAD_TEXT, Cause.METHOD_DENIED),
        *(Cause.TOOL_DENIED, Cause.TASK_UNKNOWN, Cause.DUPLICATE_ID, Cause.INPUT_LATE),
        *(Cause.REFUSED, Cause.PROJECT_MISMATCH, Cause.RESOURCE_DENIED, Cause.PROMPT_DENIED),
        *(Cause.HOOK_FAILED, Cause.SCHEMA_MISMATCH, Cause.SCHEMA_UNUSABLE, Cause.SCOPE_VIOLATION),
        *(Cause.ARGUMENTS_REFUSED, Cause.LIMITS_UNAVAILABLE, Cause.RATE_LIMITED),
        *(Cause.TOO_MANY_CALLS, Cause.TOOL_HELD),
    }
)
_OTHERS = {Cause.CALL_TIMEOUT: Status.TIMEOUT, Cause.CANCELLED: Status.CANCELLED}
# What a caller may not, whatever state the server is in: recorded of every request, not of calls
# alone.
DENIALS = frozenset(
    {
        SESSION_UNKNOWN,
        *(each.word for each in (Cause.METHOD_DENIED, Cause.TOOL_DENIED, Cause.TASK_UNKNOWN)),
        *(each.word for each in (Cause.RESOURCE_DENIED, Cause.PROMPT_DENIED, Cause.TOOL_HELD)),
    }
)


def status_of(cause: Cause) -> Status:
    """The status of a call that ended with this error."""
    if cause in _BLOCKED:
        return Status.BLOCKED
    return _OTHERS.get(cause, Status.ERROR)
