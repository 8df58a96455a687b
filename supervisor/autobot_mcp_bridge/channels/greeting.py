"""The proxy's own first words to a process, once for each: they decide its era.

A process is spoken to in one era only, from its first request on: some servers are bound by it and
refuse the other. Which era a server speaks is asked of its first process with `server/discover`
(26 basic/transports/stdio, Backward Compatibility). Handshake servers fail that question in four
ways, none of which is a crash: with an error, with silence, with their end, and by refusing
initialize afterwards. After the first two the same process is initialized, after the others a
fresh one.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.call import Call
from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.errors import MODERN_ERRORS, UNSUPPORTED_VERSION, CallError, Cause
from autobot_mcp_bridge.model.versions import (
    HANDSHAKE,
    LATEST_HANDSHAKE,
    META_CAPABILITIES,
    META_CLIENT,
    META_VERSION,
    MODERN,
    Era,
)

# So much of what a server says of itself is quoted in an error.
QUOTED = 200
# A server that says nothing for so long is initialized nevertheless; a tenth of timeouts.start if
# that is shorter.
PROBE_PATIENCE = 3.0
CLIENT = {"name": "autobot-mcp-bridge", "version": __version__}
# What every request of the proxy's own carries to a server of the modern era.
OWN_META = {META_VERSION: MODERN, META_CAPABILITIES: {}, META_CLIENT: CLIENT}
NO_FEATURES: Mapping[str, Any] = MappingProxyType({})
T = TypeVar("T")


class RefusedError(Exception):
    """The server has refused a client's own first words: no crash, and no process to go on with."""


class WrongEraError(Exception):
    """The process cannot go on; a fresh one is to be spoken to in `era`; None: to be asked."""

    def __init__(self, era: Era | None) -> None:
        super().__init__(era)
        self.era = era


async def greet(
    channel: Channel,
    era: Era | None,
    deadline: float,
    capabilities: Mapping[str, Any] = NO_FEATURES,
) -> dict[str, Any]:
    """Say the first words and return the server's initialize or server/discover result.

    It is checked and fit to be passed on. Bounded by the caller, which gives it `deadline` seconds.

    Args:
        channel: a fresh process's.
        era: what an earlier process has shown; None: not known yet.
        deadline: in seconds.
        capabilities: client features that a handshake server is offered.

    Raises:
        CallError: the server refused, or its result is of no use; what it said is redacted.
        WrongEraError: another process must be spoken to in another way.
    """
    match era:
        case Era.HANDSHAKE:
            return await _initialize(channel, deadline, capabilities)
        case Era.MODERN:
            answer = await _ask_discover(channel, deadline).result()
            if _speaks_handshake_only(answer):
                raise WrongEraError(Era.HANDSHAKE)
            return _discovered(channel, answer)
        case None:
            return await _learn(channel, deadline, capabilities)


async def _learn(
    channel: Channel, deadline: float, capabilities: Mapping[str, Any]
) -> dict[str, Any]:
    """Find out the era of a server, with its first process."""
    probe = _ask_discover(channel, deadline)
    try:
        async with asyncio.timeout(min(PROBE_PATIENCE, deadline / 10)):
            answer = await probe.result()
    except TimeoutError:
        return await _initialize_beside(channel, probe, deadline, capabilities)
    if not _speaks_handshake_only(answer):
        return _discovered(channel, answer)
    return await _initialize_after(channel, deadline, capabilities)


async def _initialize_after(
    channel: Channel, deadline: float, capabilities: Mapping[str, Any]
) -> dict[str, Any]:
    try:
        return await _initialize(channel, deadline, capabilities)
    except CallError:
        if not channel.usable:
            raise
        raise WrongEraError(Era.HANDSHAKE) from None


async def _initialize_beside(
    channel: Channel, probe: Call, deadline: float, capabilities: Mapping[str, Any]
) -> dict[str, Any]:
    """It has not answered yet: it is slow, or passes over what it does not know."""
    hello = asyncio.create_task(_initialize_after(channel, deadline, capabilities))
    discovered = asyncio.create_task(probe.result())
    try:
        await asyncio.wait({hello, discovered}, return_when=asyncio.FIRST_COMPLETED)
        if not hello.done() and not _speaks_handshake_only(discovered.result()):
            raise WrongEraError(Era.MODERN)  # it has been given both first words
        return await hello
    finally:
        channel.forget(probe)
        for task in (hello, discovered):
            task.cancel()
        await asyncio.gather(hello, discovered, return_exceptions=True)


def _ask_discover(channel: Channel, deadline: float) -> Call:
    message = {"jsonrpc": "2.0", "method": "server/discover", "params": {"_meta": {**OWN_META}}}
    # The deadline of the call lies behind that of the start, which decides.
    return channel.request(message, deadline * 2)


def _speaks_handshake_only(answer: Answer) -> bool:
    """Tell by the answer to server/discover: no result of its kind, no error of its era (G1)."""
    if not answer.is_error:
        # Some servers answer `{}` to whatever they do not know.
        return not isinstance(answer.parsed()["result"].get("supportedVersions"), list)
    error = answer.parsed()["error"]
    if error.get("code") not in MODERN_ERRORS:
        return True
    data = error.get("data")
    supported = data.get("supported") if isinstance(data, dict) else None
    return (
        error.get("code") == UNSUPPORTED_VERSION
        and isinstance(supported, list)
        and MODERN not in supported
        and any(version in HANDSHAKE for version in supported)
    )


def _discovered(channel: Channel, answer: Answer) -> dict[str, Any]:
    body = answer.parsed()
    if answer.is_error:
        raise CallError(Cause.START_FAILED, f"it refused server/discover: {_said(channel, body)}")
    result: dict[str, Any] = body["result"]
    versions = result["supportedVersions"]
    if MODERN not in versions:
        known = [version for version in versions if isinstance(version, str)]
        if any(version in HANDSHAKE for version in known):
            raise WrongEraError(Era.HANDSHAKE)
        raise _unknown_version(channel, ", ".join(known), (MODERN,))
    result.pop("protocolVersion", None)  # of the other era, by which the process is known
    return _fit(result)


async def _initialize(
    channel: Channel, deadline: float, capabilities: Mapping[str, Any]
) -> dict[str, Any]:
    params = {
        "protocolVersion": LATEST_HANDSHAKE,
        "capabilities": {**capabilities},
        "clientInfo": CLIENT,
    }
    message = {"jsonrpc": "2.0", "method": "initialize", "params": params}
    answer = await channel.request(message, deadline * 2).result()
    result = check_initialize(channel, answer)
    channel.notify("notifications/initialized")
    return result


def check_initialize(channel: Channel, answer: Answer) -> dict[str, Any]:
    """The initialize result, if it is one that can be worked with.

    Raises:
        CallError: it is not; what it said is redacted.
        WrongEraError: the server speaks the modern era only.
    """
    body = answer.parsed()
    if answer.is_error:
        if body["error"].get("code") == UNSUPPORTED_VERSION:
            raise WrongEraError(Era.MODERN)
        raise CallError(Cause.START_FAILED, f"it refused initialize: {_said(channel, body)}")
    result: dict[str, Any] = body["result"]
    version = result.get("protocolVersion")
    if version not in HANDSHAKE:
        raise _unknown_version(channel, version, HANDSHAKE)
    result.pop("supportedVersions", None)
    return _fit(result)


def _fit(result: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(result.setdefault("capabilities", {}), dict):
        raise CallError(Cause.START_FAILED, "its capabilities are no object")
    try:
        jsonrpc.dumps([[[[result]]]])  # parts of it are passed on in other places, deeper by some
    except ValueError as error:
        raise CallError(
            Cause.START_FAILED, f"what it says of itself cannot be passed on: {error}"
        ) from None
    return result


def _unknown_version(channel: Channel, version: object, known: Iterable[str]) -> CallError:
    said = channel.process.redact(_text(version))
    return CallError(
        Cause.START_FAILED, f"it speaks protocol version {said!r}; known are {', '.join(known)}"
    )


def _said(channel: Channel, body: dict[str, Any]) -> str:
    return channel.process.redact(_text(body["error"].get("message")))


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
