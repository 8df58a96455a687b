"""One request on its way: from the message a client sent to the bytes it gets back."""

from collections.abc import Callable
from functools import partial
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.call import Call
from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.errors import INVALID_PARAMS, METHOD_NOT_FOUND, MODERN_ERRORS
from autobot_mcp_bridge.sessions.session import Session

# What a change of an answer gets: the answer; it gives the answer to send.
Finish = Callable[[Answer], Answer]
# What an answer becomes for its client: HTTP status and body. It gets the client's id as JSON.
Encode = Callable[[Answer, bytes], tuple[int, bytes]]

RESOURCE_NOT_FOUND = -32002  # handshake era only; 2026-07-28 says -32602
# Results that carry cache hints in 2026-07-28 (server/utilities/caching).
CACHEABLE = frozenset(
    {"prompts/list", "resources/list", "resources/read", "resources/templates/list", "tools/list"}
)
COMPLETE = b'"resultType":"complete",'
# A handshake server says nothing of how long a list stands: stale at once.
CACHE_HINTS = b'"ttlMs":0,"cacheScope":"private",'


def for_handshake(answer: Answer, client_id: bytes) -> tuple[int, bytes]:
    """As the server wrote it: an error rides on 200 (A18), members of a later era are passed over."""
    return 200, answer.encode(client_id)


def for_modern(answer: Answer, client_id: bytes) -> tuple[int, bytes]:
    """As a server of 2026-07-28 wrote it, under the status that its error has (E8, E9)."""
    return _status(answer), answer.encode(client_id)


def translated(method: str, server_meta: bytes) -> Encode:
    """The answer of a server that was spoken to the handshake way, as 2026-07-28 has it (G5).

    Args:
        method: what was asked.
        server_meta: what the server calls itself, as a member of a result.
    """
    return partial(_translated, method, server_meta)


def _translated(
    method: str, server_meta: bytes, answer: Answer, client_id: bytes
) -> tuple[int, bytes]:
    if answer.is_error or (answer.message is None and b'"resultType"' in answer.line):
        answer.parsed()  # whatever its size: what is in it decides
    if answer.is_error:
        error = (answer.message or {}).get("error") or {}
        if error.get("code") == RESOURCE_NOT_FOUND:
            text = error["message"] if isinstance(error.get("message"), str) else ""
            data = error.get("data")
            return 200, jsonrpc.error_body(INVALID_PARAMS, text, client_id=client_id, data=data)
        return _status(answer), answer.encode(client_id)
    result: dict[str, Any] = (answer.message or {}).get("result") or {}
    members = b"" if "resultType" in result else COMPLETE
    if method in CACHEABLE and "ttlMs" not in result:
        members += CACHE_HINTS
    if answer.message is not None and "_meta" not in result:
        members += server_meta
    return 200, answer.encode(client_id, members)


def _status(answer: Answer) -> int:
    if not answer.is_error:
        return 200
    code = answer.parsed()["error"].get("code")
    if code == METHOD_NOT_FOUND:
        return 404
    return 400 if code in MODERN_ERRORS else 200


class Exchange:
    """A call in flight for one client.

    Attributes:
        call: what the channel wakes.
        client_id: the client's own id, as JSON.
        session: the handshake session it belongs to; None in the modern era.
    """

    __slots__ = ("_encode", "_finish", "call", "channel", "client_id", "session")

    def __init__(
        self,
        channel: Channel,
        call: Call,
        client_id: bytes,
        encode: Encode,
        *,
        session: Session | None = None,
        finish: Finish | None = None,
    ) -> None:
        self.channel = channel
        self.call = call
        self.client_id = client_id
        self.session = session
        self._encode = encode
        self._finish = finish
        if session is not None:
            session.calls[client_id] = call

    def close(self) -> None:
        """Take it off its session's list; idempotent."""
        self.call.deafen()
        if self.session is not None and self.session.calls.get(self.client_id) is self.call:
            del self.session.calls[self.client_id]

    def abandon(self) -> None:
        """The client has gone. In the modern era that cancels the call (E14), before it does not."""
        self.close()
        if self.session is None:
            self.channel.cancel(self.call, "the client closed the response stream")

    def encode(self, answer: Answer) -> tuple[int, bytes]:
        """HTTP status and body for the client."""
        if self._finish is not None:
            answer = self._finish(answer)
        return self._encode(answer, self.client_id)
