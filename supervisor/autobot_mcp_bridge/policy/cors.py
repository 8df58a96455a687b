"""Which pages of other origins may read answers: Fetch's CORS protocol, only where configured (F8).

No cookies are involved, so `Access-Control-Allow-Credentials` is never sent. Request headers are
listed by name: a wildcard does not cover Authorization (Fetch, section 3.3.4).
"""

from collections.abc import Mapping

from autobot_mcp_bridge.model.host import Http

METHODS = "GET, POST, DELETE"
REQUEST_HEADERS = (
    "Accept",
    "Authorization",
    "Content-Type",
    "Last-Event-ID",
    "MCP-Protocol-Version",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Session-Id",
    "X-API-Key",
    "X-Project",
)
EXPOSED = "Mcp-Session-Id, WWW-Authenticate"
# Seconds for which a browser need not ask again; a change of the configuration counts after that.
MAX_AGE = "600"
_NONE: Mapping[str, str] = {}


class Cors:
    """What answers to a page of one of these origins carry."""

    def __init__(self, http: Http) -> None:
        self._origins = {origin.lower().rstrip("/") for origin in http.allowed_origins}
        self._preflight = {
            "Access-Control-Allow-Methods": METHODS,
            "Access-Control-Allow-Headers": ", ".join((*REQUEST_HEADERS, *http.cors_headers)),
            "Access-Control-Max-Age": MAX_AGE,
        }

    def answer(self, origin: str | None) -> Mapping[str, str]:
        """Headers of an answer; none unless the origin is configured."""
        if origin is None or origin.lower().rstrip("/") not in self._origins:
            return _NONE
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": EXPOSED,
            "Vary": "Origin",
        }

    def preflight(self) -> Mapping[str, str]:
        """Further headers of the answer to a preflight request."""
        return self._preflight
