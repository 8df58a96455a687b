"""The proxy's own initialize, once for each process (25 basic/lifecycle)."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.versions import HANDSHAKE, LATEST_HANDSHAKE

# So much of what a server says of itself is quoted in an error.
QUOTED = 200
T = TypeVar("T")


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
        said = channel.process.redact(_text(body["error"].get("message")))
        raise CallError(Cause.START_FAILED, f"it refused initialize: {said}")
    result: dict[str, Any] = body["result"]
    version = result.get("protocolVersion")
    if version not in HANDSHAKE:
        said = channel.process.redact(_text(version))
        raise CallError(
            Cause.START_FAILED,
            f"it speaks protocol version {said!r}; known are {', '.join(HANDSHAKE)}",
        )
    if not isinstance(result.setdefault("capabilities", {}), dict):
        raise CallError(Cause.START_FAILED, "its capabilities are no object")
    try:
        jsonrpc.dumps([[[[result]]]])  # parts of it are passed on in other places, deeper by some
    except ValueError as error:
        raise CallError(
            Cause.START_FAILED, f"its initialize result cannot be passed on: {error}"
        ) from None
    return result


def _text(value: object) -> str:
    """What a server says where a text is due; anything else only by its kind."""
    return value[:QUOTED] if isinstance(value, str) else f"({type(value).__name__})"


async def unless_ended(channel: Channel, doing: Coroutine[Any, Any, T]) -> T | None:
    """Await something that the process must do; None when its stdout ended before."""
    task = asyncio.create_task(doing)
    ended = asyncio.create_task(channel.ended.wait())
    try:
        await asyncio.wait({task, ended}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for each in (task, ended):
            each.cancel()
        await asyncio.gather(task, ended, return_exceptions=True)
