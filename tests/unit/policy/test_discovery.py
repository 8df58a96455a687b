"""What an issuer answers over HTTP: followed only as far as it is the configured one."""

import socket
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from autobot_mcp_bridge.policy import discovery
from autobot_mcp_bridge.policy.discovery import Issuer, IssuerError, metadata_urls

KEYS = [{"kty": "RSA", "kid": "one"}]


@asynccontextmanager
async def serving(documents):
    """An issuer that answers each path with its document, or with what a function makes."""
    seen = []

    async def handle(request):
        seen.append(request.path)
        found = documents.get(request.path)
        if callable(found):
            return await found(request)
        if found is None:
            return web.Response(status=404)
        return web.json_response(found)

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    async with TestServer(app) as server:
        url = str(server.make_url("/")).rstrip("/")
        for path, document in documents.items():
            if isinstance(document, dict):
                documents[path] = {
                    k: v.replace("@", url) if isinstance(v, str) else v for k, v in document.items()
                }
        yield url, seen


def test_metadata_is_looked_for_in_the_order_of_the_specification():
    assert metadata_urls("https://id.example/tenant") == (
        "https://id.example/.well-known/oauth-authorization-server/tenant",
        "https://id.example/.well-known/openid-configuration/tenant",
        "https://id.example/tenant/.well-known/openid-configuration",
    )
    assert metadata_urls("https://id.example/") == (
        "https://id.example/.well-known/oauth-authorization-server",
        "https://id.example/.well-known/openid-configuration",
    )


@pytest.mark.parametrize("name", ["oauth-authorization-server", "openid-configuration"])
async def test_keys_are_found_by_discovery_and_then_asked_for_directly(name):
    path = f"/.well-known/{name}"
    documents = {path: {"issuer": "@", "jwks_uri": "@/keys"}, "/keys": {"keys": KEYS}}
    async with serving(documents) as (url, seen):
        issuer = Issuer(url, None)
        assert await issuer.fetch() == KEYS
        seen.clear()
        assert await issuer.fetch() == KEYS
        assert seen == ["/keys"]


async def test_a_configured_uri_needs_no_discovery():
    async with serving({"/keys": {"keys": KEYS}}) as (url, seen):
        assert await Issuer(url, f"{url}/keys").fetch() == KEYS
        assert seen == ["/keys"]


async def test_a_uri_that_fails_is_discovered_anew():
    path = "/.well-known/openid-configuration"
    documents = {path: {"issuer": "@", "jwks_uri": "@/old"}, "/old": {"keys": KEYS}}
    async with serving(documents) as (url, _):
        issuer = Issuer(url, None)
        await issuer.fetch()
        del documents["/old"]
        documents[path] = {"issuer": url, "jwks_uri": f"{url}/new"}
        documents["/new"] = {"keys": KEYS}
        with pytest.raises(IssuerError, match="status 404"):
            await issuer.fetch()
        assert await issuer.fetch() == KEYS


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"issuer": "https://evil.example", "jwks_uri": "@/keys"}, "another one"),
        ({"issuer": "@/", "jwks_uri": "@/keys"}, "another one"),
        ({"issuer": "@"}, "no jwks_uri"),
        ({"issuer": "@", "jwks_uri": "http://192.0.2.1/keys"}, "no jwks_uri"),
        ({"issuer": "@", "jwks_uri": "file:///etc/passwd"}, "no jwks_uri"),
    ],
)
async def test_metadata_of_somebody_else_is_not_followed(document, words):
    documents = {"/.well-known/openid-configuration": document, "/keys": {"keys": KEYS}}
    async with serving(documents) as (url, seen):
        with pytest.raises(IssuerError, match=words):
            await Issuer(url, None).fetch()
        assert "/keys" not in seen


async def moved(request):
    raise web.HTTPFound("/elsewhere")


async def large(request):
    return web.Response(body=b'{"keys":[]' + b" " * discovery.MAX_DOCUMENT + b"}")


async def nonsense(request):
    return web.Response(body=b"<html>")


async def deep(request):
    return web.Response(body=b"[" * 100_000)


async def words(request):
    return web.json_response(["keys"])


async def cut(request):
    request.transport.close()
    return web.Response()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (moved, "status 302"),
        (large, "more than"),
        (nonsense, "not JSON"),
        (deep, "not JSON"),
        (words, "not a JSON object"),
        (cut, "keys: "),
        ({"keys": {}}, "not a JWK set"),
    ],
)
async def test_what_is_no_jwk_set_is_an_error_that_names_the_url(answer, says):
    async with serving({"/keys": answer, "/elsewhere": {"keys": KEYS}}) as (url, _):
        with pytest.raises(IssuerError, match=says) as caught:
            await Issuer(url, f"{url}/keys").fetch()
        assert f"{url}/keys" in str(caught.value)


async def test_an_issuer_that_does_not_answer_is_given_up(monkeypatch):
    monkeypatch.setattr(discovery, "DEADLINE", 0.05)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(IssuerError, match="no answer within"):
            await Issuer(url, f"{url}/keys").fetch()
