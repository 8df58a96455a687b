"""What must hold between the host's settings for callers: TLS, public URL, CORS, access tokens."""

import importlib.util
import re
from collections.abc import Iterator

from autobot_mcp_bridge.config.problem import Loc
from autobot_mcp_bridge.model import credential, names
from autobot_mcp_bridge.model.host import Http, OAuth, Tls
from autobot_mcp_bridge.model.scopes import PLACES, is_template
from autobot_mcp_bridge.model.urls import is_base_url, is_safe_url

MAX_LEEWAY = 300.0
MAX_KEPT = 30 * 86400.0
LIBRARIES = ("jwt", "cryptography")
MISSING = (
    "needs PyJWT and cryptography, which are not installed beside the program: "
    "pip install 'autobot-mcp-bridge[oauth]'"
)
BAD_TEMPLATE = f"allowed in braces are {', '.join(PLACES)}"
_URL = "allowed is a URL with https (http on loopback), without user or fragment"
# A header's name (RFC 9110 section 5.6.2).
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def tls_relations(tls: Tls) -> Iterator[tuple[Loc, object, str]]:
    """What cannot work of [tls]: place, value, clause. What the files hold is not looked at here."""
    for key, value, other in (
        ("certificate", tls.certificate, tls.key),
        ("key", tls.key, tls.certificate),
    ):
        if value is None:
            if other is not None:
                yield ("tls", key), None, "allowed are certificate and key, or neither"
        elif not (re.fullmatch(credential.FILE, value) or names.is_part(value)):
            yield ("tls", key), value, "allowed is an absolute path, or the name of a credential"


def http_relations(http: Http) -> Iterator[tuple[Loc, object, str]]:
    """What cannot work of [http]: place, value, clause."""
    for index, name in enumerate(http.cors_headers):
        if not _HEADER.fullmatch(name) or name == "*":
            clause = "allowed is the name of a header; no wildcard"
            yield ("http", "cors_headers", index), name, clause
    if http.public_url is not None and not is_base_url(http.public_url):
        clause = (
            "allowed is https://HOST or https://HOST:PORT (http on loopback), in lower case and "
            "without a path"
        )
        yield ("http", "public_url"), http.public_url, clause


def oauth_relations(oauth: OAuth, public_url: str | None) -> Iterator[tuple[Loc, object, str]]:
    """What cannot work of [oauth]: place, value, clause. Looks for the libraries."""
    if oauth.issuer is None:
        if oauth.jwks_uri is not None:
            yield ("oauth", "jwks_uri"), oauth.jwks_uri, "needs oauth.issuer"
    else:
        if not is_safe_url(oauth.issuer) or "?" in oauth.issuer:
            yield ("oauth", "issuer"), oauth.issuer, f"{_URL} or query"
        if public_url is None:
            clause = "needs http.public_url: a token is for the URL of one server"
            yield ("oauth", "issuer"), oauth.issuer, clause
        if any(importlib.util.find_spec(name) is None for name in LIBRARIES):
            yield ("oauth", "issuer"), oauth.issuer, MISSING
    if oauth.jwks_uri is not None and not is_safe_url(oauth.jwks_uri):
        yield ("oauth", "jwks_uri"), oauth.jwks_uri, _URL
    if not oauth.algorithms:
        yield ("oauth", "algorithms"), [], "allowed is at least one"
    for index, scope in enumerate(oauth.scopes):
        if not is_template(scope):
            yield ("oauth", "scopes", index), scope, BAD_TEMPLATE
    if oauth.leeway > MAX_LEEWAY:
        yield ("oauth", "leeway"), oauth.leeway, "allowed is at most 5 minutes"
    if not oauth.keys_fresh <= oauth.keys_kept <= MAX_KEPT:
        clause = "allowed is from oauth.keys_fresh to 30 days"
        yield ("oauth", "keys_kept"), oauth.keys_kept, clause
