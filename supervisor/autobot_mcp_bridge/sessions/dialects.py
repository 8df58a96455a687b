"""A message of one era in the words of the other (PROTOCOL of 2025-11-25 and of 2026-07-28).

Requests are written anew anyway, so what is added or left out here costs nothing more. Everything
that is not named here passes untouched.
"""

from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.greeting import OWN_META
from autobot_mcp_bridge.model.versions import (
    META_CAPABILITIES,
    META_CLIENT,
    META_LOG_LEVEL,
    META_SERVER,
    META_SUBSCRIPTION,
    META_VERSION,
    MODERN,
    Era,
    era_of,
    server_info,
)
from autobot_mcp_bridge.sessions.session import Session

# What a handshake server hears of logs before its client has asked for a level (25 logging).
DEFAULT_LEVEL = "info"
_OF_REQUESTS = (META_VERSION, META_CAPABILITIES, META_CLIENT, META_LOG_LEVEL)


def params_of(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def meta_of(params: dict[str, Any]) -> dict[str, Any]:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def own_request(era: Era, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """A request of the proxy's own, as a process of that era wants it."""
    if era is Era.MODERN:
        params = {**params, "_meta": {**OWN_META}}
    return {"jsonrpc": "2.0", "method": method, "params": params}


def undress(params: dict[str, Any]) -> None:
    """Take out what belongs to the modern era: some servers refuse a mix."""
    meta = meta_of(params)
    if meta:
        for key in _OF_REQUESTS:
            meta.pop(key, None)
        if not meta:
            del params["_meta"]


def dress(message: dict[str, Any], session: Session) -> str:
    """Put in what the session has said at its beginning; tells the level of logs that is asked."""
    params = message.setdefault("params", {})
    level = session.level or DEFAULT_LEVEL
    params["_meta"] = {
        **meta_of(params),
        META_VERSION: MODERN,
        META_CAPABILITIES: session.client.capabilities,
        META_CLIENT: session.client.info or OWN_META[META_CLIENT],
        META_LOG_LEVEL: level,
    }
    return level


def discovered(hello: dict[str, Any], versions: tuple[str, ...]) -> dict[str, Any]:
    """The server/discover result for a client, of whichever era the server is.

    Args:
        hello: what the server said first.
        versions: those that a client may speak (G6).
    """
    if era_of(hello) is Era.MODERN:
        return {**hello, "supportedVersions": list(versions)}
    # Tasks of the handshake era are an extension in the other, with another form.
    kept = {name: value for name, value in hello["capabilities"].items() if name != "tasks"}
    result: dict[str, Any] = {
        "resultType": "complete",
        "supportedVersions": list(versions),
        "capabilities": kept,
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {META_SERVER: server_info(hello)},
    }
    if isinstance(hello.get("instructions"), str):
        result["instructions"] = hello["instructions"]
    return result


def initialized(hello: dict[str, Any], version: str) -> dict[str, Any]:
    """The initialize result for a client, of whichever era the server is."""
    if era_of(hello) is Era.HANDSHAKE:
        return {**hello, "protocolVersion": version}
    info = {"name": "", "version": "", **server_info(hello)}
    result: dict[str, Any] = {
        "protocolVersion": version,
        "capabilities": hello["capabilities"],
        "serverInfo": info,
    }
    if isinstance(hello.get("instructions"), str):
        result["instructions"] = hello["instructions"]
    return result


def untagged(message: dict[str, Any]) -> bytes:
    """A notification without the subscription that it came by.

    Raises:
        ValueError: it cannot be written.
    """
    params = params_of(message)
    meta = {key: value for key, value in meta_of(params).items() if key != META_SUBSCRIPTION}
    kept = {key: value for key, value in params.items() if key != "_meta"}
    if meta:
        kept["_meta"] = meta
    told = {key: value for key, value in message.items() if key != "params"}
    return jsonrpc.dumps({**told, "params": kept} if kept else told)


def taggable(message: dict[str, Any]) -> tuple[bytes, bytes]:
    """A notification for listeners: what stands before and behind the id that each listens by (E15).

    Written once for all of them, however large it is.

    Raises:
        ValueError: it cannot be written.
    """
    params = params_of(message)
    meta = {key: value for key, value in meta_of(params).items() if key != META_SUBSCRIPTION}
    told = {key: value for key, value in message.items() if key != "params"}
    rest = {key: value for key, value in params.items() if key != "_meta"}
    whole = {**told, "params": {**rest, "_meta": {**meta, META_SUBSCRIPTION: 0}}}
    end = b"}}}"
    return jsonrpc.dumps(whole).removesuffix(b"0" + end), end
