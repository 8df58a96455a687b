"""A question to a server on behalf of `/v1`: an ordinary request of the modern era.

It passes the same policy, process and counts as a client's own would.
"""

import asyncio
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.model.errors import INVALID_PARAMS, INVALID_REQUEST, CallError, Cause
from autobot_mcp_bridge.model.versions import META_CAPABILITIES, META_VERSION, MODERN
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.proxy.incoming import Refusal
from autobot_mcp_bridge.proxy.replies import error_reply
from autobot_mcp_bridge.proxy.served import Served
from autobot_mcp_bridge.sessions.pages import MAX_LISTED

_ID = b'"v1"'


async def ask(
    served: Served, principal: Principal, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    """The result; what was asked takes at most timeouts.start and timeouts.call together.

    Raises:
        Refusal: 400, for the server does not like the parameters.
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
            raise _refused(found.get("error"))
    except CallError as error:
        served.counts.calls[error.cause.word] += 1
        raise
    served.counts.calls["ok"] += 1
    return result


def _refused(error: Any) -> Exception:
    """What the server's own error becomes; only the cursor is the caller's, and can be wrong."""
    code, text = (error.get("code"), error.get("message")) if isinstance(error, dict) else ("", "")
    said = f"the server answered with an error: {text!s:.500}"
    if code == INVALID_PARAMS:
        return Refusal(error_reply(400, INVALID_REQUEST, said))
    return CallError(Cause.BAD_ANSWER, said)


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
