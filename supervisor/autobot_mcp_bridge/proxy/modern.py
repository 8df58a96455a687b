"""The endpoint at 2026-07-28: one POST a request, no session, headers that mirror the body."""

import base64
import re
from functools import partial
from typing import Any

from aiohttp import web

from autobot_mcp_bridge.model.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    UNSUPPORTED_VERSION,
    CallError,
)
from autobot_mcp_bridge.model.mirrored import (
    METHOD_HEADER,
    NAME_HEADER,
    NAMED_BY,
    PARAM_HEADER,
    Mirrored,
)
from autobot_mcp_bridge.model.versions import (
    META_CAPABILITIES,
    META_VERSION,
    MODERN,
    MODERN_KEYS,
)
from autobot_mcp_bridge.policy.audit.record import CallRecord
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.proxy.handshake import VERSION_HEADER
from autobot_mcp_bridge.proxy.incoming import Accepts, Incoming, Refusal
from autobot_mcp_bridge.proxy.listening import listen
from autobot_mcp_bridge.proxy.replies import NULL, call_error_reply, error_reply, json_reply
from autobot_mcp_bridge.proxy.served import Served
from autobot_mcp_bridge.proxy.streams import answer, event

VISIBLE = re.compile(r"[\x21-\x7e \t]*")
NUMBER = re.compile(r"-?\d{1,16}(\.0*)?")
BASE64_START, BASE64_END = "=?base64?", "?="


def is_modern(request: web.BaseRequest, incoming: Incoming) -> bool:
    """E1: by the version header, or by the keys that only 2026-07-28 puts into `_meta`."""
    if request.headers.get(VERSION_HEADER) == MODERN:
        return True
    return not MODERN_KEYS.isdisjoint(incoming.meta)


async def post(
    request: web.BaseRequest,
    served: Served,
    principal: Principal,
    incoming: Incoming,
    accepts: Accepts,
    record: CallRecord,
) -> web.StreamResponse:
    """One message of a 2026-07-28 client."""
    client_id = incoming.client_id
    if incoming.method is None:
        raise Refusal(error_reply(400, INVALID_REQUEST, "responses do not exist in 2026-07-28"))
    _check(request, incoming, client_id or NULL, served.conversations.versions)
    if client_id is None:
        return web.Response(
            status=202
        )  # it is acted on by nothing that a client could choose (E12)
    try:
        if incoming.method == "subscriptions/listen":
            return await _listen(request, served, principal, incoming, accepts, record)
        record.check()
        record.passes(incoming.message)
        begun = await served.conversations.begin_modern(
            principal,
            incoming.message,
            client_id,
            streamable=accepts.stream,
            check=partial(_check_mirrored, request, client_id),
        )
    except CallError as error:
        record.failed(error)
        return call_error_reply(error, client_id, modern=True)
    incoming.forget()
    if isinstance(begun, bytes):
        record.ok()
        if accepts.json:
            return json_reply(begun)
        return web.Response(body=event(begun), content_type="text/event-stream")
    return await answer(request, begun, accepts, record, modern=True)


async def _listen(
    request: web.BaseRequest,
    served: Served,
    principal: Principal,
    incoming: Incoming,
    accepts: Accepts,
    record: CallRecord,
) -> web.StreamResponse:
    """A stream of changes, until the client goes or the server does (E15, E16)."""
    if not accepts.stream:
        text = "Accept must allow text/event-stream"
        reply = error_reply(406, INVALID_REQUEST, text, client_id=incoming.client_id or NULL)
        raise Refusal(reply)
    listener = await served.conversations.listen(principal, incoming.message)
    incoming.forget()
    try:
        record.ok()
        return await listen(request, listener)
    finally:
        served.conversations.unlisten(listener)


def _check_mirrored(
    request: web.BaseRequest,
    client_id: bytes,
    mirrored: tuple[Mirrored, ...],
    params: dict[str, Any],
) -> None:
    """Parameters of a tool that its client repeats in headers (E5, Custom Headers)."""
    for each in mirrored:
        name = PARAM_HEADER + each.header
        sent = _single(request, name, client_id)
        value = each.find(params.get("arguments"))
        if value is None and sent is None:
            continue
        fits = sent is not None and VISIBLE.fullmatch(sent) is not None
        if sent is None or not fits or not _equal(_decoded(sent), value):
            where = ".".join(("params.arguments", *each.path))
            raise _mismatch(f"{name} must equal {where}", client_id)


def _equal(sent: str | None, value: object) -> bool:
    """A header's text against a parameter; integers are compared as numbers."""
    if sent is None:
        return False
    match value:
        case bool():
            return sent == str(value).lower()
        case str():
            return sent == value
        case int():
            return NUMBER.fullmatch(sent) is not None and float(sent) == value
        case _:
            return False


def _check(
    request: web.BaseRequest, incoming: Incoming, client_id: bytes, versions: tuple[str, ...]
) -> None:
    """The mirrored headers against the body (E3, E4, E6, E7)."""
    meta = incoming.meta
    header = _single(request, VERSION_HEADER, client_id)
    stated = meta.get(META_VERSION)
    if header is None or (stated is not None and stated != header):
        raise _mismatch(f"{VERSION_HEADER} must equal {META_VERSION} in _meta", client_id)
    if header != MODERN:
        data = {"supported": list(versions), "requested": header}
        text = f"unsupported protocol version {header}"
        raise Refusal(error_reply(400, UNSUPPORTED_VERSION, text, client_id=client_id, data=data))
    if _single(request, METHOD_HEADER, client_id) != incoming.method:
        raise _mismatch(f"{METHOD_HEADER} must equal the body's method", client_id)
    if incoming.client_id is None:
        return
    if stated is None or not isinstance(meta.get(META_CAPABILITIES), dict):
        text = f"_meta must hold {META_VERSION} and {META_CAPABILITIES}"
        raise Refusal(error_reply(400, INVALID_PARAMS, text, client_id=client_id))
    key = NAMED_BY.get(incoming.method or "")
    if key is not None:
        name = _single(request, NAME_HEADER, client_id)
        if name is None or _decoded(name) != incoming.params.get(key):
            raise _mismatch(f"{NAME_HEADER} must equal params.{key}", client_id)


def _single(request: web.BaseRequest, name: str, client_id: bytes) -> str | None:
    values = request.headers.getall(name, ())
    if len(values) > 1:
        raise _mismatch(f"{name} must be sent once", client_id)
    return values[0] if values else None


def _decoded(value: str) -> str | None:
    """A header value out of its base64 form, which carries what a header cannot (26 transports)."""
    if not (value.startswith(BASE64_START) and value.endswith(BASE64_END)):
        return value
    try:
        inner = value[len(BASE64_START) : -len(BASE64_END)]
        return base64.b64decode(inner, validate=True).decode("utf-8")
    except ValueError:  # no base64, no ASCII, no UTF-8
        return None


def _mismatch(text: str, client_id: bytes) -> Refusal:
    return Refusal(error_reply(400, HEADER_MISMATCH, text, client_id=client_id))
