"""The one table of errors: for each cause its HTTP status, JSON-RPC code and stable word.

ARCHITECTURE.md shows this table; a test compares the two. A call that never reached its server
is refused with an HTTP status of its own; a call that was in flight gets 200 and a JSON-RPC error.
"""

from enum import Enum
from typing import Any

# JSON-RPC 2.0 section 5.1, and MCP 2026-07-28 basic/index for -32020..-32022.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
CAPABILITY_REQUIRED = -32021
UNSUPPORTED_VERSION = -32022
# A tuple: what a server gives as a code is looked for in it, and need not be hashable.
MODERN_ERRORS = (HEADER_MISMATCH, CAPABILITY_REQUIRED, UNSUPPORTED_VERSION)
UNAVAILABLE = -32000  # ours, from the range that JSON-RPC leaves to implementations


class Cause(Enum):
    """Why a call failed: `(word in error.data.code, HTTP status, JSON-RPC code)`."""

    # refused before any contact with the server
    INSTALLING = ("installing", 503, UNAVAILABLE)
    INSTALL_FAILED = ("install_failed", 503, UNAVAILABLE)
    CREDENTIAL_MISSING = ("credential_missing", 503, UNAVAILABLE)
    REFUSED = ("definition_refused", 503, UNAVAILABLE)
    DISABLED = ("disabled", 503, UNAVAILABLE)
    STOPPED = ("stopped_by_operator", 503, UNAVAILABLE)
    BREAKER_OPEN = ("breaker_open", 503, UNAVAILABLE)
    MASKED = ("masked", 503, UNAVAILABLE)
    NO_UNIT = ("no_unit", 503, UNAVAILABLE)
    QUEUE_FULL = ("queue_full", 503, UNAVAILABLE)
    TOO_MANY_SESSIONS = ("too_many_sessions", 503, UNAVAILABLE)
    SHUTTING_DOWN = ("shutting_down", 503, UNAVAILABLE)
    AUDIT_UNAVAILABLE = ("audit_unavailable", 503, UNAVAILABLE)
    LIMITS_UNAVAILABLE = ("limits_unavailable", 503, UNAVAILABLE)
    RATE_LIMITED = ("rate_limited", 429, UNAVAILABLE)
    TOO_MANY_CALLS = ("too_many_calls", 429, UNAVAILABLE)
    BAD_TEXT = ("bad_text", 200, INVALID_PARAMS)
    METHOD_DENIED = ("method_denied", 200, METHOD_NOT_FOUND)
    TOOL_DENIED = ("tool_denied", 200, INVALID_PARAMS)
    TOOL_HELD = ("tool_held", 200, INVALID_PARAMS)
    RESOURCE_DENIED = ("resource_denied", 200, INVALID_PARAMS)
    PROMPT_DENIED = ("prompt_denied", 200, INVALID_PARAMS)
    HOOK_FAILED = ("hook_failed", 200, UNAVAILABLE)
    SCHEMA_MISMATCH = ("schema_mismatch", 200, INVALID_PARAMS)
    SCHEMA_UNUSABLE = ("schema_unusable", 200, UNAVAILABLE)
    SCOPE_VIOLATION = ("scope_violation", 200, INVALID_PARAMS)
    ARGUMENTS_REFUSED = ("arguments_refused", 200, INVALID_PARAMS)
    TASK_UNKNOWN = ("task_unknown", 200, INVALID_PARAMS)
    DUPLICATE_ID = ("duplicate_id", 400, INVALID_REQUEST)
    INPUT_LATE = ("input_late", 200, INVALID_PARAMS)
    PROJECT_MISMATCH = ("mcp_server_project_mismatch", 200, UNAVAILABLE)
    # in flight, or the start that the call asked for failed
    START_FAILED = ("start_failed", 200, UNAVAILABLE)
    CRASHED = ("server_crashed", 200, UNAVAILABLE)
    CALL_TIMEOUT = ("call_timeout", 200, UNAVAILABLE)
    ANSWER_TOO_LARGE = ("answer_too_large", 200, UNAVAILABLE)
    CAPABILITY_REQUIRED = ("capability_required", 400, CAPABILITY_REQUIRED)
    RESPONSE_BLOCKED = ("response_blocked", 200, UNAVAILABLE)
    BAD_ANSWER = ("bad_answer", 200, INTERNAL_ERROR)
    CANCELLED = ("cancelled", 200, UNAVAILABLE)
    STOPPED_IN_FLIGHT = ("server_stopped", 200, UNAVAILABLE)
    INTERNAL = ("internal", 500, INTERNAL_ERROR)

    def __init__(self, word: str, status: int, code: int) -> None:
        self.word = word
        self.status = status
        self.code = code


class BridgeError(Exception):
    """The root of this project's errors; `exit_code` follows sysexits(3)."""

    exit_code = 70  # EX_SOFTWARE


class UsageError(BridgeError):
    """A person asked for something that is not possible; the message says what is."""

    exit_code = 64  # EX_USAGE


class CallError(BridgeError):
    """A call that gets no answer from its server.

    Attributes:
        cause: the row of the table.
        data: more for `error.data`, never a secret.
        retry_after: seconds after which another try makes sense, or None.
    """

    def __init__(
        self,
        cause: Cause,
        message: str,
        *,
        data: dict[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.data = data or {}
        self.retry_after = retry_after
