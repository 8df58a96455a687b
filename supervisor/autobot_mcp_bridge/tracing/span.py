"""One call as spans: the proxy's own, that of the exchange with the server, that of a start.

Span and attribute names are those of OpenTelemetry's semantic conventions for MCP; what they do not
know begins with `mcp_bridge.`. Times are nanoseconds since 1970.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson

from autobot_mcp_bridge.tracing.context import BAGGAGE, PARENT, STATE, Context

# Kinds and the status of OTLP (trace.proto).
INTERNAL, SERVER, CLIENT = 1, 2, 3
ERROR = 2
# What is told of the exchange with a server, besides what names the call.
PIPE = {"network.transport": "pipe"}
START = "instance.start"
# What is true of the request over HTTP alone.
_OF_HTTP = ("network.protocol.name", "client.address", "mcp.session.id", "mcp.protocol.version")

Attributes = dict[str, str | int]
Emit = Callable[[bytes], None]


def encoded(
    context: Context,
    parent: str,
    name: str,
    kind: int,
    times: tuple[int, int],
    attributes: Mapping[str, str | int],
    *,
    link: Context | None = None,
) -> bytes:
    """A span in the JSON form of OTLP, where ids are hexadecimal and 64-bit numbers are texts."""
    began, ended = times
    span: dict[str, Any] = {
        "traceId": context.trace,
        "spanId": context.span,
        "flags": 0x01,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(ended),
        "attributes": [{"key": key, "value": _value(it)} for key, it in attributes.items()],
    }
    if context.state:
        span["traceState"] = context.state
    if parent:
        span["parentSpanId"] = parent
    if link is not None:
        span["links"] = [{"traceId": link.trace, "spanId": link.span}]
    if "error.type" in attributes:
        span["status"] = {"code": ERROR}
    return orjson.dumps(span)


def _value(value: str | int) -> dict[str, str]:
    return {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}


class CallTrace:
    """Implements `CallSpan`.

    Args:
        own: the proxy's span of it, whose trace, state and baggage the server is told.
        parent: the caller's span; "" for none.
        name: of the span, as the conventions have it.
        attributes: of the call; none is added but those of its end.
        emit: takes each span that has ended.
        link: another span that the call's HTTP request belongs to.
    """

    def __init__(
        self,
        own: Context,
        parent: str,
        name: str,
        attributes: Attributes,
        emit: Emit,
        link: Context | None = None,
    ) -> None:
        self._own = own
        self._parent = parent
        self._name = name
        self._attributes = attributes
        self._emit = emit
        self._link = link
        self._began = time.time_ns()
        self._clock = time.perf_counter_ns()
        self._client: tuple[Context, int] | None = None
        self._ended = False

    @property
    def trace_id(self) -> str:
        return self._own.trace

    def passes(self, message: dict[str, Any]) -> None:
        """The server's parent is the exchange with it, where that will be one of our spans.

        A notification has no end, and an initialize may be answered from memory.
        """
        context = self._own
        if "id" in message and message["method"] != "initialize":
            own = self._own
            context = Context(own.trace, new_span(), own.sampled, own.state, own.baggage)
            self._client = context, self._now()
        params = message.setdefault("params", {})
        meta = params.setdefault("_meta", {})
        if not isinstance(meta, dict):
            return  # it is for the server to say what is wrong with it
        meta[PARENT] = f"00-{context.trace}-{context.span}-01"
        if context.state:
            meta[STATE] = context.state
        else:
            meta.pop(STATE, None)  # of another trace, or none that can be passed on
        if context.baggage:
            meta.setdefault(BAGGAGE, context.baggage)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """While the block runs the call waits for its server to start."""
        began = self._now()
        try:
            yield
        finally:
            if not self._ended:
                start = Context(self._own.trace, new_span(), sampled=True, state=self._own.state)
                times = began, self._now()
                self._emit(encoded(start, self._own.span, START, INTERNAL, times, {}))

    def here(self) -> None:
        self._client = None

    def end(self, error: str | None, code: int | None) -> None:
        if self._ended:
            return
        self._ended = True
        attributes = self._attributes
        if error is not None:
            attributes["error.type"] = error
        if code is not None:
            attributes["rpc.response.status_code"] = str(code)
        now = self._now()
        if self._client is not None:
            context, began = self._client
            told = {**attributes, **PIPE}
            for name in _OF_HTTP:
                told.pop(name, None)
            times = began, now
            self._emit(encoded(context, self._own.span, self._name, CLIENT, times, told))
        times, link = (self._began, now), self._link
        own = encoded(self._own, self._parent, self._name, SERVER, times, attributes, link=link)
        self._emit(own)

    def _now(self) -> int:
        """By the clock that nobody sets."""
        return self._began + time.perf_counter_ns() - self._clock


def new_span() -> str:
    return secrets.token_hex(8)
