"""The revisions of MCP that are served, and which era each belongs to."""

MODERN = "2026-07-28"
# Newest first. 2024-11-05 has another HTTP transport, but its clients negotiate it over this one.
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
LATEST_HANDSHAKE = HANDSHAKE[0]
# The version a request without MCP-Protocol-Version speaks when there is no session to ask
# (2025-06-18 basic/transports, Protocol Version Header).
ASSUMED = "2025-03-26"
BATCH_VERSION = "2025-03-26"  # the only revision with JSON-RPC batches
SUPPORTED = (MODERN, *HANDSHAKE)

META = "io.modelcontextprotocol/"
META_VERSION = META + "protocolVersion"
META_CAPABILITIES = META + "clientCapabilities"
META_CLIENT = META + "clientInfo"
META_SERVER = META + "serverInfo"
META_LOG_LEVEL = META + "logLevel"
MODERN_KEYS = frozenset({META_VERSION, META_CAPABILITIES})


def negotiate(offered: object, spoken: str) -> str:
    """The version for a client that offers one, in front of a server that speaks another.

    The lower of the two; a version nobody knows is answered with the server's (25 lifecycle,
    Version Negotiation).
    """
    if offered in HANDSHAKE and isinstance(offered, str):
        return min(offered, spoken)
    return spoken
