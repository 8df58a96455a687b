"""The proxy's own initialize, once for each process (25 basic/lifecycle)."""

from typing import Any

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.versions import HANDSHAKE, LATEST_HANDSHAKE

# So much of what a server says of itself is quoted in an error.
QUOTED = 200


async def say_hello(channel: Channel, deadline: float) -> dict[str, Any]:
    """Initialize the server and return its result, checked and fit to be passed on.

    Bounded by the caller, which gives it `deadline` seconds.

    Raises:
        CallError: it refused, or its result is of no use; what it said is redacted.
    """
    params = {
        "protocolVersion": LATEST_HANDSHAKE,
        "capabilities": {},
        "clientInfo": {"name": "autobot-mcp-bridge", "version": __version__},
    }
    message = {"jsonrpc": "2.0", "method": "initialize", "params": params}
    # The deadline of the call lies behind that of the start, which decides.
    call = channel.request(message, deadline * 2)
    answer = await call.result()
    body = answer.parsed()
    if answer.is_error:
        said = channel.process.redact(str(body["error"].get("message"))[:QUOTED])
        raise CallError(Cause.START_FAILED, f"it refused initialize: {said}")
    result: dict[str, Any] = body["result"]
    version = result.get("protocolVersion")
    if version not in HANDSHAKE:
        said = channel.process.redact(str(version)[:QUOTED])
        raise CallError(
            Cause.START_FAILED,
            f"it speaks protocol version {said!r}; known are {', '.join(HANDSHAKE)}",
        )
    if not isinstance(result.setdefault("capabilities", {}), dict):
        raise CallError(Cause.START_FAILED, "its capabilities are no object")
    try:
        jsonrpc.dumps(result)
    except ValueError as error:
        raise CallError(
            Cause.START_FAILED, f"its initialize result cannot be passed on: {error}"
        ) from None
    return result
