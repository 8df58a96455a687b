"""What each method answers, by era; a method is a coroutine function of the call."""

import asyncio
from typing import Any

import asking
import gateway
import offer
import tools
from call import LEVELS, META, TOOLS, Call, RpcError

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
INFO = {"name": "conformance", "version": "1.0.0"}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}
INSTRUCTIONS = "A server for tests."
TYPES = ("toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions")
MODULES = (asking, gateway, tools)  # importing them has filled TOOLS


async def call_tool(call: Call) -> Any:
    name = call.params.get("name")
    if name not in TOOLS:
        raise RpcError(-32602, f"Unknown tool: {name}")
    return await TOOLS[name][1](call, call.params.get("arguments") or {})


async def common(call: Call) -> Any:
    """What both eras have."""
    match call.method:
        case "tools/list":
            return {"tools": [described for described, _ in TOOLS.values()]}
        case "tools/call":
            return await call_tool(call)
        case "prompts/list":
            return offer.list_prompts()
        case "prompts/get":
            return await offer.get_prompt(call)
        case "resources/list":
            return offer.list_resources()
        case "resources/templates/list":
            return offer.list_templates()
        case "resources/read":
            return offer.read_resource(call)
        case "completion/complete":
            return {"completion": {"values": [], "total": 0, "hasMore": False}}
    raise RpcError(-32601, f"Method not found: {call.method}")


async def handshake(call: Call) -> Any:
    server, params = call.server, call.params
    match call.method:
        case "initialize":
            asked = params.get("protocolVersion")
            server.version = asked if asked in HANDSHAKE else HANDSHAKE[-1]
            server.client_offers = params.get("capabilities") or {}
            return {
                "protocolVersion": server.version,
                "capabilities": CAPABILITIES,
                "serverInfo": INFO,
                "instructions": INSTRUCTIONS,
            }
        case "resources/subscribe":
            server.subscribed.add(params.get("uri"))
            return {}
        case "resources/unsubscribe":
            server.subscribed.discard(params.get("uri"))
            return {}
        case "ping":
            return {}
        case "logging/setLevel":
            if params.get("level") not in LEVELS:
                raise RpcError(-32602, "unknown log level")
            server.log_level = params["level"]
            return {}
    return await common(call)


async def modern(call: Call) -> Any:
    server = call.server
    match call.method:
        case "server/discover":
            older = list(reversed(HANDSHAKE)) if server.era == "both" else []
            return {
                "supportedVersions": [MODERN, *older],
                "capabilities": CAPABILITIES,
                "instructions": INSTRUCTIONS,
            }
        case "subscriptions/listen":
            return await listen(call)
    return await common(call)


async def listen(call: Call) -> None:
    """Tell of changes until the client cancels."""
    asked = call.params.get("notifications") or {}
    wanted = {key: asked[key] for key in TYPES if asked.get(key)}
    call.server.listening[call.ident] = wanted
    told = {"_meta": {META + "subscriptionId": call.ident}, "notifications": wanted}
    call.server.notify("notifications/subscriptions/acknowledged", told)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        del call.server.listening[call.ident]


def check_envelope(params: dict[str, Any]) -> None:
    """Refuse a modern request without what each must carry."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        raise RpcError(-32602, "params._meta is required")
    version = meta.get(META + "protocolVersion")
    if not isinstance(version, str):
        raise RpcError(-32602, "_meta lacks the protocol version")
    if version != MODERN:
        raise unsupported(version)
    if not isinstance(meta.get(META + "clientCapabilities"), dict):
        raise RpcError(-32602, "_meta lacks the client's capabilities")
    if meta.get(META + "logLevel") not in (None, *LEVELS):
        raise RpcError(-32602, "unknown log level")


def unsupported(requested: Any) -> RpcError:
    told = {"supported": [MODERN], "requested": requested}
    return RpcError(-32022, "Unsupported protocol version", told)
