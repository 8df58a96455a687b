"""Metadata of the protected resources, which tells clients where to get a token (RFC 9728)."""

from aiohttp import web

from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.names import parse_path
from autobot_mcp_bridge.model.scopes import fill
from autobot_mcp_bridge.proxy.replies import not_allowed

# RFC 9728 section 3.1: put in front of the resource's own path.
PREFIX = "/.well-known/oauth-protected-resource"


def metadata_url(public_url: str, path: str) -> str:
    return f"{public_url}{PREFIX}{path}"


def metadata(request: web.BaseRequest, settings: HostSettings) -> web.Response:
    """The document of any endpoint that there could be, so that it tells of none that is (F5)."""
    issuer, public_url = settings.oauth.issuer, settings.http.public_url
    path = request.rel_url.raw_path.removeprefix(PREFIX)
    server = parse_path(path)
    if issuer is None or public_url is None or server is None:
        return web.Response(status=404, text="not found")
    if request.method not in ("GET", "HEAD"):
        return not_allowed("GET, HEAD")
    document: dict[str, object] = {
        "resource": public_url + path,
        "authorization_servers": [issuer],
        "bearer_methods_supported": ["header"],
    }
    if settings.oauth.scopes:
        document["scopes_supported"] = list(fill(settings.oauth.scopes, server))
    return web.json_response(document)
