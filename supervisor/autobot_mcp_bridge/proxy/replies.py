"""Answers of the proxy's own: refusals and errors, the same form everywhere."""

import math
from collections.abc import Mapping

from aiohttp import web

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.model.errors import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNAVAILABLE,
    CallError,
    Cause,
)

JSON = "application/json"
NULL = b"null"


def json_reply(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type=JSON)


def error_reply(
    status: int, code: int, message: str, *, client_id: bytes = NULL, data: object = None
) -> web.Response:
    """A JSON-RPC error under an HTTP status of its own."""
    return json_reply(jsonrpc.error_body(code, message, client_id=client_id, data=data), status)


def call_error_body(error: CallError, client_id: bytes) -> bytes:
    data = {"code": error.cause.word, **error.data}
    if error.retry_after is not None:
        data["retry_after"] = math.ceil(error.retry_after)
    return jsonrpc.error_body(error.cause.code, str(error), client_id=client_id, data=data)


def call_error_reply(error: CallError, client_id: bytes, *, modern: bool = False) -> web.Response:
    """What a call gets that its server did not answer."""
    status = error.cause.status
    if modern and error.cause is Cause.METHOD_DENIED:
        status = 404  # 2026-07-28 transports: -32601 rides on 404
    reply = json_reply(call_error_body(error, client_id), status)
    if status in (429, 503):
        reply.headers["Retry-After"] = str(max(1, math.ceil(error.retry_after or 1)))
    return reply


def unauthorized(*, sent: bool, hints: Mapping[str, str]) -> web.Response:
    """401, a function of the credential's form alone: none sent, or one that is not valid here.

    Equal for every server, known or not (NV-11); RFC 6750 section 3 gives no error code to a
    request without a credential.

    Args:
        sent: whether a credential was.
        hints: what else the challenge says, from the form of the path alone.
    """
    if sent:
        reply = error_reply(401, INVALID_REQUEST, "the token is not valid here")
        return challenged(reply, {"error": "invalid_token", **hints})
    reply = error_reply(401, INVALID_REQUEST, "a bearer token is required")
    return challenged(reply, hints)


def insufficient_scope(hints: Mapping[str, str]) -> web.Response:
    """403 to a token that is for this server but allows too little (RFC 6750 section 3.1)."""
    reply = error_reply(403, INVALID_REQUEST, "the scope of the token does not suffice")
    return challenged(reply, {"error": "insufficient_scope", **hints})


def cannot_judge(retry_after: float) -> web.Response:
    """503 while an issuer gives no keys: the token may be good, and must not be thrown away."""
    text = "access tokens cannot be checked now: their issuer gives no keys"
    reply = error_reply(503, UNAVAILABLE, text)
    reply.headers["Retry-After"] = str(math.ceil(retry_after))
    return reply


def challenged(reply: web.Response, parameters: Mapping[str, str]) -> web.Response:
    """Add a Bearer challenge (RFC 6750 section 3); no value may hold a quote."""
    words = ", ".join(f'{name}="{value}"' for name, value in parameters.items())
    reply.headers["WWW-Authenticate"] = f"Bearer {words}".rstrip()
    return reply


def not_allowed(allow: str) -> web.Response:
    """405 with the methods that there are (RFC 9110 section 15.5.6)."""
    reply = error_reply(405, METHOD_NOT_FOUND, "method not allowed")
    reply.headers["Allow"] = allow
    return reply
