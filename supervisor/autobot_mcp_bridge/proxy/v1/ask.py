"""A question to a server on behalf of `/v1`: an ordinary request of the modern era.

It passes the same policy, process and counts as a client's own would.
"""

import asyncio
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.versions import META_CAPABILITIES, META_VERSION, MODERN
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.proxy.served import Served
from autobot_mcp_bridge.sessions.catalog import MAX_LISTED

_ID = b'"v1"'


async def ask(
    served: Served, principal: Principal, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    """The result; what was asked takes at most timeouts.start and timeouts.call together.

    Raises:
        CallError: there is none, or it is too large; `bad_answer` with the server's own error.
    """
    meta = {META_VERSION: MODERN, META_CAPABILITIES: {}}
    message = {"jsonrpc": "2.0", "id": "v1", "method": method, "params": {**params, "_meta": meta}}
    try:
        body = await _sent(served, principal, message)
        if len(body) > MAX_LISTED:  # it is parsed whole, which holds up everybody
            text = f"what the server lists has more than {MAX_LISTED} bytes"
            raise CallError(Cause.ANSWER_TOO_LARGE, text)
        found = jsonrpc.loads(body)
        if not isinstance(result := found.get("result"), dict):
            text = found.get("error", {}).get("message")
            raise CallError(Cause.BAD_ANSWER, f"the server answered with an error: {text!s:.500}")
    except CallError as error:
        served.counts.calls[error.cause.word] += 1
        raise
    served.counts.calls["ok"] += 1
    return result


async def _sent(served: Served, principal: Principal, message: dict[str, Any]) -> bytes:
    begun = await served.conversations.begin_modern(
        principal, message, _ID, streamable=False, check=lambda _found, _params: None
    )
    if isinstance(begun, bytes):
        return begun
    try:
        return begun.encode(await begun.call.result())[1]
    except asyncio.CancelledError:
        begun.abandon()
        raise
    finally:
        begun.close()
