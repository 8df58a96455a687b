"""An issuer's keys over HTTP: its metadata (RFC 8414, OpenID Connect Discovery), its JWK set."""

import asyncio
import json
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp

from autobot_mcp_bridge.model.urls import is_safe_url

# Seconds for metadata and keys together.
DEADLINE = 5.0
# Metadata of large issuers has some 10 KiB, their JWK sets some more.
MAX_DOCUMENT = 256 * 1024
_WELL_KNOWN = "/.well-known/"


class IssuerError(Exception):
    """An issuer does not give its keys; the message says what was asked and what came."""


class KeySource(Protocol):
    """Where keys come from."""

    async def fetch(self) -> list[Any]:
        """The members of `keys` of the issuer's JWK set, as they came.

        Raises:
            IssuerError: they cannot be had now.
        """
        ...


class Issuer:
    """One authorization server, asked for its keys within a deadline and a size.

    Redirects are not followed: what is configured, or named by metadata of the configured issuer,
    is all that is asked.
    """

    def __init__(self, issuer: str, jwks_uri: str | None) -> None:
        self._issuer = issuer
        self._configured = jwks_uri
        self._found: str | None = None  # by discovery, until it fails

    async def fetch(self) -> list[Any]:
        try:
            async with asyncio.timeout(DEADLINE), aiohttp.ClientSession() as client:
                uri = self._configured or self._found or await self._discover(client)
                document = await _get(client, uri)
        except TimeoutError:
            self._found = None
            raise IssuerError(f"no answer within {DEADLINE:g} s") from None
        except IssuerError:
            self._found = None
            raise
        keys = document.get("keys")
        if not isinstance(keys, list):
            raise IssuerError(f"{uri}: not a JWK set")
        self._found = uri
        return keys

    async def _discover(self, client: aiohttp.ClientSession) -> str:
        problems: list[str] = []
        for url in metadata_urls(self._issuer):
            try:
                document = await _get(client, url)
            except IssuerError as error:
                problems.append(str(error))
                continue
            if document.get("issuer") != self._issuer:
                # RFC 8414 section 3.3: such a document must not be used.
                problems.append(f"{url}: its issuer is another one than {self._issuer}")
                continue
            uri = document.get("jwks_uri")
            if not isinstance(uri, str) or not is_safe_url(uri):
                problems.append(f"{url}: names no jwks_uri with https")
                continue
            return uri
        raise IssuerError("; ".join(problems))


def metadata_urls(issuer: str) -> tuple[str, ...]:
    """Where its metadata may be, in the order of MCP's authorization page."""
    parts = urlsplit(issuer)
    base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    found = (
        f"{base}{_WELL_KNOWN}oauth-authorization-server{path}",
        f"{base}{_WELL_KNOWN}openid-configuration{path}",
        f"{base}{path}{_WELL_KNOWN}openid-configuration",
    )
    return tuple(dict.fromkeys(found))


async def _get(client: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    headers = {"Accept": "application/json"}
    try:
        async with client.get(url, headers=headers, allow_redirects=False) as response:
            if response.status != 200:
                raise IssuerError(f"{url}: status {response.status}")
            body = await _bounded(response, url)
        document = json.loads(body)
    except (aiohttp.ClientError, OSError) as error:
        raise IssuerError(f"{url}: {error or type(error).__name__}") from None
    except (ValueError, RecursionError):
        raise IssuerError(f"{url}: not JSON") from None
    if not isinstance(document, dict):
        raise IssuerError(f"{url}: not a JSON object")
    return document


async def _bounded(response: aiohttp.ClientResponse, url: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > MAX_DOCUMENT:
            raise IssuerError(f"{url}: more than {MAX_DOCUMENT} bytes")
        parts.append(chunk)
    return b"".join(parts)
