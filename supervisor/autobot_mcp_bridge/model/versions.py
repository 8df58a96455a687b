"""The revisions of MCP that are served, and which era each belongs to."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

MODERN = "2026-07-28"
# Newest first. 2024-11-05 has another HTTP transport, but its clients negotiate it over this one.
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
LATEST_HANDSHAKE = HANDSHAKE[0]
BATCH_VERSION = "2025-03-26"  # the only revision with JSON-RPC batches
SUPPORTED = (MODERN, *HANDSHAKE)

META = "io.modelcontextprotocol/"
META_VERSION = META + "protocolVersion"
META_CAPABILITIES = META + "clientCapabilities"
META_CLIENT = META + "clientInfo"
META_SERVER = META + "serverInfo"
META_LOG_LEVEL = META + "logLevel"
META_SUBSCRIPTION = META + "subscriptionId"
MODERN_KEYS = frozenset({META_VERSION, META_CAPABILITIES})


def negotiate(offered: object, spoken: str) -> str:
    """The version for a client that offers one, in front of a server that speaks another.

    The lower of the two; a version nobody knows is answered with the server's (25 lifecycle,
    Version Negotiation).
    """
    if offered in HANDSHAKE and isinstance(offered, str):
        return min(offered, spoken)
    return spoken


class Era(StrEnum):
    """How a conversation begins: with initialize (to 2025-11-25), or with nothing (2026-07-28)."""

    HANDSHAKE = "handshake"
    MODERN = "modern"


def era_of(hello: Mapping[str, Any]) -> Era:
    """The era of a process by what it said first: its initialize or its server/discover result."""
    return Era.MODERN if "supportedVersions" in hello else Era.HANDSHAKE


def spoken_by(hello: Mapping[str, Any]) -> tuple[str, ...]:
    """The versions in which a process of its own can serve a client, by what it said first."""
    if era_of(hello) is Era.HANDSHAKE:
        return SUPPORTED  # in which modern clients are served by translation
    return tuple(version for version in SUPPORTED if version in hello["supportedVersions"])


def server_info(hello: Mapping[str, Any]) -> dict[str, Any]:
    """What it calls itself, wherever its era has it."""
    meta = hello.get("_meta")
    info = hello.get("serverInfo", meta.get(META_SERVER) if isinstance(meta, dict) else None)
    return info if isinstance(info, dict) else {}
