"""Which JSON-RPC methods pass: those of the two eras and those that a server's definition adds.

Everything else is denied before the server sees it (BUGS G2). Decided on the parsed body, never
on a header.
"""

from fnmatch import fnmatchcase

COMMON_REQUESTS = frozenset(
    {
        "completion/complete",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "tools/call",
        "tools/list",
    }
)
HANDSHAKE_REQUESTS = COMMON_REQUESTS | {
    "initialize",
    "logging/setLevel",
    "ping",
    "resources/subscribe",
    "resources/unsubscribe",
}
MODERN_REQUESTS = COMMON_REQUESTS | {"server/discover", "subscriptions/listen"}
# Methods of the handshake era that do not exist in the modern one, whatever methods.allow says.
REMOVED_IN_MODERN = HANDSHAKE_REQUESTS - COMMON_REQUESTS


def allowed(method: str, known: frozenset[str], more: tuple[str, ...]) -> bool:
    """Tell whether a request may pass; `more` are the globs of methods.allow."""
    return method in known or any(fnmatchcase(method, glob) for glob in more)
