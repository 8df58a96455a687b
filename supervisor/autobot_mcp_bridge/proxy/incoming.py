"""What a client may send: media types, size, JSON-RPC shape. Nothing here knows a server."""

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import orjson
from aiohttp import web

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.model.errors import INVALID_REQUEST, PARSE_ERROR
from autobot_mcp_bridge.policy.audit.outcome import REFUSED
from autobot_mcp_bridge.proxy.replies import JSON, error_reply

# All header fields together; 431 above it. aiohttp's own limit per field lies higher.
MAX_HEADERS = 16 * 1024
EVENT_STREAM = "text/event-stream"


class Refusal(Exception):  # noqa: N818 - not an error of ours: a reply
    """The request cannot be served; `reply` is what it gets, `word` what its record says."""

    def __init__(self, reply: web.Response, word: str = REFUSED) -> None:
        super().__init__(reply.status)
        self.reply = reply
        self.word = word

    @property
    def status(self) -> int:
        return self.reply.status


@dataclass(frozen=True, slots=True)
class Accepts:
    """Which forms of an answer the client takes."""

    json: bool
    stream: bool


@lru_cache(maxsize=256)
def accepted(header: str) -> Accepts:
    """Read an Accept header; wildcards count for JSON, only the exact type for a stream (A8)."""
    kinds = set()
    for item in header.lower().split(","):
        kind, *parameters = (word.strip() for word in item.split(";"))
        if not any(parameter.replace(" ", "") in ("q=0", "q=0.0") for parameter in parameters):
            kinds.add(kind)
    json = bool(kinds & {JSON, "application/*", "*/*", ""})
    return Accepts(json=json, stream=EVENT_STREAM in kinds)


def accepts_of(request: web.BaseRequest) -> Accepts:
    values = request.headers.getall("Accept", ())
    return accepted(values[0] if len(values) == 1 else ",".join(values))


def single(request: web.BaseRequest, name: str) -> str | None:
    """The value of a header field that may be sent once; None when it was not.

    Two values would be read as the first here and as the last elsewhere.

    Raises:
        Refusal: it was sent more than once.
    """
    values = request.headers.getall(name, ())
    if len(values) > 1:
        raise Refusal(error_reply(400, INVALID_REQUEST, f"{name} must be sent once"))
    return values[0] if values else None


def check_media(request: web.BaseRequest) -> Accepts:
    """Refuse a body that is not plain JSON (415), and a client that takes no answer of ours (406)."""
    content_type = single(request, "Content-Type") or ""
    if content_type != JSON and content_type.partition(";")[0].strip().lower() != JSON:
        raise Refusal(error_reply(415, INVALID_REQUEST, "Content-Type must be application/json"))
    if (single(request, "Content-Encoding") or "identity").strip().lower() != "identity":
        # A few bytes could unpack to any size.
        raise Refusal(error_reply(415, INVALID_REQUEST, "Content-Encoding is not supported"))
    accepts = accepts_of(request)
    if not accepts.json and not accepts.stream:
        text = "Accept must allow application/json or text/event-stream"
        raise Refusal(error_reply(406, INVALID_REQUEST, text))
    return accepts


def check_headers(request: web.BaseRequest) -> None:
    """Refuse header fields beyond the limit (431)."""
    if sum(map(len, chain.from_iterable(request.raw_headers))) > MAX_HEADERS:
        raise Refusal(error_reply(431, INVALID_REQUEST, f"headers above {MAX_HEADERS} bytes"))


async def expect_continue(request: web.BaseRequest) -> None:
    """Let a client send its body that asks first (RFC 9110 section 10.1.1), as curl does above 1 MiB."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


async def read_body(request: web.BaseRequest, cap: int, patience: float) -> bytes:
    """The whole body, refused above the cap without being kept (413), or when it stalls (408)."""
    if (request.content_length or 0) > cap:
        raise _too_large(cap)
    content = request.content
    if content.is_eof() and request.content_length is not None:
        return content.read_nowait()  # it is here already, as most are
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(patience):
            async for chunk in content.iter_any():
                size += len(chunk)
                if size > cap:
                    raise _too_large(cap)
                parts.append(chunk)
    except TimeoutError:
        refusal = error_reply(
            408, INVALID_REQUEST, f"the body did not arrive within {patience:g} s"
        )
        refusal.force_close()
        raise Refusal(refusal) from None
    return b"".join(parts)


def _too_large(cap: int) -> Refusal:
    reply = error_reply(413, INVALID_REQUEST, f"the body is larger than {cap} bytes")
    reply.force_close()  # the rest of it is not read
    return Refusal(reply)


def parse_body(body: bytes) -> Any:
    """The body as JSON.

    Raises:
        Refusal: it is none (A10).
    """
    try:
        return jsonrpc.loads(body)
    except ValueError as error:
        text = f"the body is not valid JSON: {error}"
        raise Refusal(error_reply(400, PARSE_ERROR, text)) from None


@dataclass(slots=True)
class Incoming:
    """One JSON-RPC message of a client.

    Attributes:
        client_id: its id as JSON, so that its type is kept; None for a notification or response.
        method: None for a response.
    """

    message: dict[str, Any]
    client_id: bytes | None
    method: str | None

    def forget(self) -> None:
        """Let go of what was asked: an answer may be long in coming, and there are many of them."""
        self.message = {}

    @property
    def params(self) -> dict[str, Any]:
        params = self.message.get("params")
        return params if isinstance(params, dict) else {}

    @property
    def meta(self) -> dict[str, Any]:
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


def read_message(document: Any) -> Incoming:
    """Check one message's shape (JSON-RPC 2.0 section 4).

    Raises:
        Refusal: it is not a message (400 -32600).
    """
    if not isinstance(document, dict):
        raise Refusal(error_reply(400, INVALID_REQUEST, "not a JSON-RPC message"))
    if document.get("jsonrpc") != "2.0":
        raise Refusal(error_reply(400, INVALID_REQUEST, 'jsonrpc must be "2.0"'))
    method = document.get("method")
    if method is None and ("result" in document or "error" in document):
        return Incoming(document, None, None)
    if not isinstance(method, str):
        raise Refusal(error_reply(400, INVALID_REQUEST, "method must be a string"))
    if not isinstance(document.get("params", {}), dict):
        raise Refusal(error_reply(400, INVALID_REQUEST, "params must be an object"))
    if "id" not in document:
        return Incoming(document, None, method)
    identifier = document["id"]
    if isinstance(identifier, bool) or not isinstance(identifier, int | str | orjson.Fragment):
        raise Refusal(error_reply(400, INVALID_REQUEST, "id must be a string or an integer"))
    client_id = jsonrpc.dumps(identifier)
    if len(client_id) > jsonrpc.MAX_ID:
        text = f"id must have at most {jsonrpc.MAX_ID} bytes"
        raise Refusal(error_reply(400, INVALID_REQUEST, text))
    return Incoming(document, client_id, method)
