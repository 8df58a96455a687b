"""A collector of traces: OTLP over HTTP, read by OpenTelemetry's own classes."""

import asyncio
import base64
import json
import socket
import time
from collections.abc import Callable
from typing import Any, Self

from aiohttp import web
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.client import Modern, Session
from support.waiting import eventually

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
KINDS = {Span.SPAN_KIND_SERVER: "server", Span.SPAN_KIND_CLIENT: "client"}
_IDS = ("traceId", "spanId", "parentSpanId")
Misbehave = Callable[[web.Request], Any]


class Seen:
    """One span as the collector has it."""

    def __init__(self, span: Any, resource: dict[str, str]) -> None:
        self.name: str = span.name
        self.kind = KINDS.get(span.kind, "internal")
        self.trace, self.id = span.trace_id.hex(), span.span_id.hex()
        self.parent: str = span.parent_span_id.hex()
        self.state: str = span.trace_state
        self.links = [(link.trace_id.hex(), link.span_id.hex()) for link in span.links]
        self.failed = span.status.code == 2
        self.message: str = span.status.message
        self.began, self.ended = span.start_time_unix_nano, span.end_time_unix_nano
        self.attributes = _plain(span.attributes)
        self.resource = resource

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} {self.attributes}>"


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def _binary_ids(value: Any) -> Any:
    """OTLP's JSON has ids in hexadecimal, where that of protobuf has base64."""
    if isinstance(value, list):
        return [_binary_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64encode(bytes.fromhex(each)).decode() if name in _IDS else _binary_ids(each)
        for name, each in value.items()
    }


class Collector:
    """`async with Collector() as collector`: takes spans, or does what `misbehave` does instead."""

    def __init__(self, listener: socket.socket | None = None) -> None:
        """`listener` is of another network, such as a container's; else one of this machine."""
        self._listener = listener
        self.spans: list[Seen] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.others: list[str] = []  # what was asked for besides the traces
        self.misbehave: Misbehave | None = None
        self.url = ""
        self._since = 0

    async def __aenter__(self) -> Self:
        server = web.Server(self._answer, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        if self._listener is None:
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        else:
            await web.SockSite(self._runner, self._listener).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != "/v1/traces":
            self.others.append(request.path)
            return web.Response(status=404)
        body = await request.read()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        if self.misbehave is not None:
            found: web.StreamResponse = await self.misbehave(request)
            return found
        assert request.content_type == "application/json"
        message = ParseDict(_binary_ids(json.loads(body)), ExportTraceServiceRequest())
        for resource in message.resource_spans:
            told = _plain(resource.resource.attributes)
            for scope in resource.scope_spans:
                found = [Seen(span, told) for span in scope.spans]
                self.spans += [span for span in found if span.began >= self._since]
        return web.json_response({})

    async def of(self, name: str, number: int = 2) -> dict[str, Seen]:
        """The spans of this name, by kind, once there are so many of the newest trace."""

        def found() -> dict[str, Seen]:
            named = [span for span in self.spans if span.name == name]
            last = [span for span in named if span.trace == named[-1].trace]
            return {span.kind: span for span in last} if len(last) >= number else {}

        return await eventually(found, what=f"{number} spans {name} among {self.spans}")

    def forget(self) -> None:
        """What began before now is of no interest, and may still come."""
        self._since = time.time_ns()
        self.spans.clear()
        self.bodies.clear()


async def never(_request: web.BaseRequest) -> web.StreamResponse:
    """Does not answer."""
    await asyncio.Event().wait()
    raise AssertionError


async def without_end(request: web.BaseRequest) -> web.StreamResponse:
    """Answers for as long as anybody reads."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"x" * 65536)


def status(number: int, **headers: str) -> Misbehave:
    async def answer(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=number, headers=headers)

    return answer


def exporting(collector: Collector) -> dict[str, dict[str, Any]]:
    """host.toml of a proxy that sends there."""
    return {"tracing": {"endpoint": collector.url}}


async def mirrored(
    client: Session | Modern,
    *,
    meta: dict[str, Any] | None = None,
    headers: dict[str, str | None] | None = None,
) -> Any:
    """What the server was sent as `_meta`."""
    message = client.call_of("mirror", {})
    if meta is not None:
        message["params"]["_meta"] = meta
    response = await client.send(message, headers=headers)
    (answer,) = response.messages
    return json.loads(answer["result"]["content"][0]["text"]).get("_meta")
