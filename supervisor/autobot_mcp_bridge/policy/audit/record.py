"""One request's record: made when the request is read, closed once, whatever becomes of it."""

import asyncio
import time
from collections import Counter
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.policy.audit.asked import Asked, Kind, Recorded
from autobot_mcp_bridge.policy.audit.outcome import (
    CLIENT_GONE,
    DENIALS,
    INTERNAL,
    TOLD,
    Status,
    status_of,
)
from autobot_mcp_bridge.policy.audit.traced import CallSpan

# What `error` says where it was the server that answered so.
RPC_ERROR, TOOL_ERROR = "rpc_error", "tool_failed"
INPUT_REQUIRED = "input_required"
LOGGER = "audit"


@runtime_checkable
class Refused(Protocol):
    """A refusal by the endpoint, before a call was made of the request."""

    @property
    def status(self) -> int: ...
    @property
    def word(self) -> str: ...


class Keeper(Protocol):
    """Where records come from, and their lines go to."""

    @property
    def refusal(self) -> CallError | None:
        """Why no call may be made now."""
        ...

    def over(self, record: "CallRecord", line: dict[str, Any] | None) -> None:
        """A record is closed; None: it leaves no line."""
        ...


class CallRecord:
    """Closed exactly once: by the first who says how the request has ended.

    As a context manager it belongs to whoever serves the request, and is closed at the latest when
    the block ends; unless it has been handed over to a stream that outlives the connection.
    """

    __slots__ = ("_began", "_closed", "_counts", "_handed", "_keeper", "_server", "asked", "span")

    def __init__(
        self, keeper: Keeper, server: Recorded, asked: Asked, counts: Counter[str]
    ) -> None:
        """`counts` are the server's calls by outcome."""
        self.asked = asked
        self._keeper = keeper
        self._server = server
        self._counts = counts
        self._began = time.perf_counter()
        self._closed = False
        self._handed = False
        self.span: CallSpan | None = None  # of a call that is traced

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._closed or self._handed:
            return
        match error:
            case None if self.asked.kind is not Kind.CALL:
                self._close(Status.OK)
            case asyncio.CancelledError() | ConnectionError():
                self.gone()
            case CallError():
                self.failed(error)
            case Refused():
                self.refused(error)
            case None | Exception():
                self._count(INTERNAL)
                self._close(Status.ERROR, INTERNAL, {"code": Cause.INTERNAL.code})

    def hand_over(self) -> None:
        """Somebody else closes it, who lives on when the connection is gone."""
        self._handed = True

    def check(self) -> None:
        """Raise CallError if nothing may be called that cannot be recorded."""
        if self.asked.kind is Kind.CALL and (refusal := self._keeper.refusal) is not None:
            raise refusal

    def passes(self, message: dict[str, Any]) -> None:
        """The message goes on to its server, which is told of the trace that it belongs to."""
        if self.span is not None:
            self.span.passes(message)

    # ---- ends ----

    def ok(self) -> None:
        """The proxy itself has answered."""
        if self.span is not None:
            self.span.here()
        self._count("ok")
        self._close(Status.OK)

    def answered(self, answer: Answer) -> None:
        """The server has; an error of its own is one in the record, and a call that went well else.

        An answer that is too large to be parsed is not looked into.
        """
        self._count("ok")
        if answer.is_error:
            error = (answer.message or {}).get("error")
            code = error.get("code") if isinstance(error, dict) else None
            self._close(Status.ERROR, RPC_ERROR, {"code": code} if isinstance(code, int) else {})
            return
        result = answer.message.get("result") if answer.message is not None else None
        if isinstance(result, dict):
            if result.get("isError") is True:
                self._close(Status.ERROR, TOOL_ERROR)
                return
            if result.get("resultType") == INPUT_REQUIRED:
                self._close(Status.OK, None, {"message": INPUT_REQUIRED})
                return
        self._close(Status.OK)

    def failed(self, error: CallError) -> None:
        """It gets an error of the proxy's."""
        word, death = error.cause.word, error.data.get("death")
        self._count(word)
        more = {"code": error.cause.code, "message": str(error)}
        if isinstance(death, dict):  # of its server's process
            more["cause"] = death.get("cause")
        self._close(status_of(error.cause), word, more)

    def refused(self, refusal: Refused) -> None:
        """It was none that could be made."""
        self._close(Status.BLOCKED, refusal.word, {"message": f"HTTP {refusal.status}"})

    def gone(self) -> None:
        """Its client has gone before the answer."""
        self._count(CLIENT_GONE)
        self._close(Status.CANCELLED, CLIENT_GONE)

    def _count(self, outcome: str) -> None:
        if not self._closed and self.asked.kind is not Kind.MESSAGE:
            self._counts[outcome] += 1

    def _close(
        self, status: Status, error: str | None = None, more: dict[str, Any] | None = None
    ) -> None:
        if self._closed:
            return
        self._closed = True
        if self.span is not None:
            self._end_span(self.span, status, error, more)
        if self.asked.kind is not Kind.CALL and error not in DENIALS:
            self._keeper.over(self, None)
            return
        asked, server, who = self.asked, self._server, self.asked.who
        event, level = TOLD[status]
        line = {
            "timestamp": "",  # the keeper's, who has the clock
            "level": level,
            "logger": LOGGER,
            "event": event,
            "tool": asked.tool,
            "agent_id": who.agent_id,
            "agent_type": who.agent_type,
            "args": asked.args,
            "status": status,
            "error": error,
            "session_id": asked.session,
            "elapsed_ms": round((time.perf_counter() - self._began) * 1000, 3),
            "tenant": server.tenant,
            "project": server.project,
            "server": server.server,
            "instance": server.instance,
            "principal": who.principal,
            "client": asked.client,
            "method": asked.method,
            "era": asked.era,
        }
        if more is not None:
            if "message" in more:
                more["message"] = server.redact.text(more["message"])
            line |= more
        if self.span is not None:
            line["trace_id"] = self.span.trace_id
        self._keeper.over(self, line)

    @staticmethod
    def _end_span(
        span: CallSpan, status: Status, error: str | None, more: dict[str, Any] | None
    ) -> None:
        """Close the call's trace, which gets the word of its error, and nothing that is said of it."""
        if status is Status.BLOCKED:
            span.here()
        code = more.get("code") if more is not None else None
        if error == RPC_ERROR and code is not None:
            error = str(code)  # as OpenTelemetry's conventions for MCP have it
        elif error == TOOL_ERROR:
            error = "tool_error"
        span.end(error, code)
