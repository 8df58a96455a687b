"""One request on its way: from the message a client sent to the bytes it gets back."""

from collections.abc import Callable
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.channel import Call, Channel
from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from autobot_mcp_bridge.sessions.session import Session

# What a change of an answer gets: the answer; it gives the answer to send.
Finish = Callable[[Answer], Answer]

RESOURCE_NOT_FOUND = -32002  # handshake era only; 2026-07-28 says -32602
# Results that carry cache hints in 2026-07-28 (server/utilities/caching).
CACHEABLE = frozenset(
    {"prompts/list", "resources/list", "resources/read", "resources/templates/list", "tools/list"}
)
COMPLETE = b'"resultType":"complete",'
# A shared process may change its lists at any time and nobody listens yet: stale at once.
CACHE_HINTS = b'"ttlMs":0,"cacheScope":"private",'


class Exchange:
    """A call in flight for one client, in one era.

    Attributes:
        call: what the channel wakes.
        session: the handshake session it belongs to; None in the modern era.
    """

    __slots__ = ("_client_id", "_finish", "_members", "_method", "call", "channel", "session")

    def __init__(
        self,
        channel: Channel,
        call: Call,
        client_id: bytes,
        method: str,
        *,
        session: Session | None = None,
        finish: Finish | None = None,
        server_meta: bytes = b"",
    ) -> None:
        self.channel = channel
        self.call = call
        self.session = session
        self._client_id = client_id
        self._method = method
        self._finish = finish
        self._members = server_meta
        if session is not None:
            session.calls[client_id] = call

    @property
    def client_id(self) -> bytes:
        return self._client_id

    def close(self) -> None:
        """Take it off its session's list; idempotent."""
        self.call.deafen()
        if self.session is not None and self.session.calls.get(self._client_id) is self.call:
            del self.session.calls[self._client_id]

    def abandon(self) -> None:
        """The client has gone. In the modern era that cancels the call (E14), before it does not."""
        self.close()
        if self.session is None:
            self.channel.cancel(self.call, "the client closed the response stream")

    def encode(self, answer: Answer) -> tuple[int, bytes]:
        """HTTP status and body for the client."""
        if self._finish is not None:
            answer = self._finish(answer)
        if self.session is not None:
            return 200, answer.encode(self._client_id)
        return encode_modern(answer, self._client_id, self._method, self._members)


def encode_modern(
    answer: Answer, client_id: bytes, method: str, server_meta: bytes
) -> tuple[int, bytes]:
    """The answer of a server that was spoken to the handshake way, as 2026-07-28 has it (G5)."""
    if answer.is_error or (answer.message is None and b'"resultType"' in answer.line):
        answer.parsed()  # whatever its size: what is in it decides
    if answer.is_error:
        error = (answer.message or {}).get("error") or {}
        code = error.get("code")
        if code == RESOURCE_NOT_FOUND:
            text = error["message"] if isinstance(error.get("message"), str) else ""
            data = error.get("data")
            return 200, jsonrpc.error_body(INVALID_PARAMS, text, client_id=client_id, data=data)
        return (404 if code == METHOD_NOT_FOUND else 200), answer.encode(client_id)
    result: dict[str, Any] = (answer.message or {}).get("result") or {}
    members = b"" if "resultType" in result else COMPLETE
    if method in CACHEABLE and "ttlMs" not in result:
        members += CACHE_HINTS
    if answer.message is not None and "_meta" not in result:
        members += server_meta
    return 200, answer.encode(client_id, members)
