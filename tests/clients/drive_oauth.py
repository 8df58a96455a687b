"""Have the official Python client get its own token: URL FLOW ISSUER SECRET SCOPE, prints one JSON line.

FLOW `credentials` is a client with a secret; `consent` registers itself and has a user agree, whose
browser is played here. The client finds the issuer by itself, from the proxy's challenge.
"""

import json
import sys
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.client import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

DEADLINE = 60.0  # seconds for the whole conversation
CALLBACK = "http://127.0.0.1:1/callback"  # nothing listens there: the browser stops before it
REDIRECTS = 10


class Storage:
    """Tokens and registration, for as long as this runs."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """Follows redirects, with cookies, until one leads back to the client."""

    def __init__(self):
        self.result = None

    async def open(self, url):
        async with httpx2.AsyncClient() as http:
            for _ in range(REDIRECTS):
                response = await http.get(url)
                url = urljoin(url, response.headers["location"])
                if url.startswith(CALLBACK):
                    query = {key: value[0] for key, value in parse_qs(urlsplit(url).query).items()}
                    self.result = AuthorizationCodeResult(
                        code=query["code"], state=query["state"], iss=query.get("iss")
                    )
                    return
        raise RuntimeError(f"no way back to the client: {url}")

    async def back(self):
        return self.result


def provider(url, flow, issuer, secret, scope, storage):
    if flow == "credentials":
        return ClientCredentialsOAuthProvider(
            url, storage, "tests", secret, scope=scope, issuer=issuer
        )
    browser = Browser()
    metadata = OAuthClientMetadata(
        redirect_uris=[CALLBACK],
        client_name="tests",
        grant_types=["authorization_code"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )
    return OAuthClientProvider(url, metadata, storage, browser.open, browser.back)


async def converse(url, flow, issuer, secret, scope):
    storage = Storage()
    async with create_mcp_http_client(
        auth=provider(url, flow, issuer, secret, scope, storage)
    ) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            result = await client.call_tool("echo", {"text": "across"})
            return {
                "version": client.protocol_version,
                "text": result.content[0].text,
                "token": storage.tokens.access_token,
            }


async def main():
    with anyio.fail_after(DEADLINE):
        seen = await converse(*sys.argv[1:])
    print(json.dumps(seen))


anyio.run(main)
