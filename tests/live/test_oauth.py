"""Access tokens of a real issuer: which count where, and what every other one is told (F1, F5)."""

import asyncio
import base64
import hashlib
import hmac
import json
import time

import jwt
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives import serialization

from support.bridge import Bridge, new_token
from support.client import answer_to, code_of, text_of
from support.fakes import echo, path_of
from support.issuer import Issuer, SigningKey, unsigned
from support.keys import made
from support.waiting import PATIENCE, eventually
from support.wire import exchange

pytestmark = pytest.mark.asyncio(loop_scope="module")

PUBLIC = "https://mcp.example"
FILES = "/t/acme/p/web/s/files/mcp"
UNKNOWN = "/t/acme/p/web/s/nobody/mcp"
DISABLED = "/t/acme/p/web/s/disabled/mcp"
METADATA = "/.well-known/oauth-protected-resource"
SERVERS = [
    echo("files", tenant="acme", project="web"),
    echo("other", tenant="acme", project="web"),
    echo("disabled", tenant="acme", project="web", enabled=False),
    echo("files", tenant="rival"),
    echo("strict", tenant="acme", scopes=["mcp:{tenant}", "mcp:rival"]),
    echo("free", tenant="acme", scopes=[]),
]


def host(issuer, **oauth):
    table = {"issuer": issuer.url, "scopes": ["mcp:{tenant}"], "leeway": "1s", **oauth}
    return {"http": {"public_url": PUBLIC}, "oauth": table}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def issuer(need):
    async with Issuer(need("issuer")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge(issuer):
    async with Bridge(SERVERS, host=host(issuer)) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def own(need):
    """An issuer for one test, which it may stop and start."""
    async with Issuer(need("issuer")) as running:
        yield running


async def post(bridge, path, token=None, **headers):
    """One request with this token; 415 is what comes after a token that counts."""
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return await exchange(bridge.base + path, "POST", {"Host": "127.0.0.1", **headers}, b"{}")


async def counts(bridge, path, token):
    response = await post(bridge, path, token)
    assert response.status in {401, 415}, response
    return response.status == 415


def challenge(path, error="", scope="mcp:acme"):
    first = f'error="{error}", ' if error else ""
    return f'Bearer {first}resource_metadata="{PUBLIC}{METADATA}{path}", scope="{scope}"'


@pytest.mark.parametrize("era", ["session", "modern"])
async def test_a_token_of_the_issuer_for_a_server_opens_it(bridge, issuer, era):
    token = await issuer.token(PUBLIC + FILES, "mcp:acme")
    async with getattr(bridge, era)("acme.web.files") as client:
        if era == "session":
            await client.delete()
            client.session = client.version = None
            client.token = token
            await client.initialize()
        client.token = token
        assert await client.text("echo", text="across") == "across"


async def test_an_access_token_and_a_key_do_not_count_together_and_each_does_alone(bridge, issuer):
    token = await issuer.token(PUBLIC + FILES, "mcp:acme")
    key, _ = await made(bridge, "acme", "web")

    both = await post(bridge, FILES, token, **{"X-API-Key": key})

    assert both.comparable == (await post(bridge, FILES, new_token())).comparable
    assert both.status == 401
    assert await counts(bridge, FILES, token)
    assert await counts(bridge, FILES, key)


async def test_an_access_token_comes_from_the_project_of_its_route(bridge, issuer):
    async with bridge.modern("acme.web.files") as client:
        client.token = await issuer.token(PUBLIC + FILES, "mcp:acme")
        message = client.call_of("echo", {"text": "x"}, ident=1)
        own = await client.send(message, headers={"X-Project": "web"})
        other = await client.send(message, headers={"X-Project": "shop"})
    assert text_of(answer_to(own, 1)) == "x"
    assert code_of(answer_to(other, 1)) == "mcp_server_project_mismatch"


async def test_static_tokens_count_beside_those_of_the_issuer(bridge):
    async with bridge.session("acme.web.files") as session:
        assert await session.text("echo", text="across") == "across"


@pytest.mark.requirement("F1", "F5", "NV-11")
@pytest.mark.parametrize(
    ("path", "scope"),
    [
        (FILES, "mcp:acme"),
        (UNKNOWN, "mcp:acme"),
        (DISABLED, "mcp:acme"),
        ("/t/acme/s/strict/mcp", "mcp:acme"),
        ("/t/nobody/s/x/mcp", "mcp:nobody"),
    ],
)
async def test_a_challenge_says_where_to_get_a_token_whether_the_server_exists_or_not(
    bridge, path, scope
):
    for headers in ({}, {"X-Project": "web"}):
        response = await post(bridge, path, **headers)
        assert response.status == 401
        assert response.header("WWW-Authenticate") == challenge(path, scope=scope)
    for refused in (
        await post(bridge, path, new_token()),
        await post(bridge, path, **{"X-Api-Key": "x"}),
    ):
        assert refused.status == 401
        assert refused.header("WWW-Authenticate") == challenge(path, "invalid_token", scope)


async def test_a_malformed_path_has_no_metadata_to_be_told_of(bridge):
    for path in ("/t/", "/t/acme/s/-/mcp", FILES + "/", '/t/a"b/s/x/mcp'):
        assert (await post(bridge, path)).header("WWW-Authenticate") == "Bearer"


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("path", [FILES, UNKNOWN, "/t/nobody/s/x/mcp"])
async def test_every_endpoint_that_could_be_has_its_metadata(bridge, issuer, path):
    response = await exchange(bridge.base + METADATA + path)
    assert response.status == 200
    assert response.messages == [
        {
            "resource": PUBLIC + path,
            "authorization_servers": [issuer.url],
            "bearer_methods_supported": ["header"],
            "scopes_supported": [f"mcp:{path.split('/')[2]}"],
        }
    ]


async def test_other_paths_below_well_known_stay_404(bridge):
    for path in (METADATA, METADATA + "/t/acme", "/.well-known/oauth-authorization-server",
                 "/.well-known/openid-configuration", "/register", "/token", "/authorize"):  # fmt: skip
        response = await exchange(bridge.base + path)
        assert (response.status, response.body) == (404, b"not found")
    assert (await exchange(bridge.base + METADATA + FILES, "POST", body=b"")).status == 405
    foreign = await exchange(bridge.base + METADATA + FILES, headers={"Host": "evil.example"})
    assert foreign.status == 421


def altered(issuer):
    """Each token that must not count, by what is wrong with it."""
    resource = PUBLIC + FILES
    right = issuer.claims(resource)
    now = right["iat"]
    stranger = SigningKey(kid=issuer.key.kid)
    public = issuer.key.private.public_key()
    head, body, signature = issuer.made(resource).split(".")
    pem = _pem(public)
    return {
        "for another server": issuer.made(PUBLIC + "/t/acme/p/web/s/other/mcp"),
        "for the host": issuer.made(PUBLIC),
        "for a longer path": issuer.made(resource + "/"),
        "for a client": issuer.made("tests"),
        "for nobody": issuer.made(resource, aud=None),
        "for no text": issuer.made(resource, aud=7),
        "expired": issuer.made(resource, exp=now - 60),
        "without an end": issuer.made(resource, exp=None),
        "with an endless end": issuer.made(resource, exp=float("inf")),
        "not valid yet": issuer.made(resource, nbf=now + 60),
        "from the future": issuer.made(resource, iat=now + 600),
        "of another issuer": issuer.made(resource, iss="https://id.example"),
        "of no issuer": issuer.made(resource, iss=None),
        "bound to a key": issuer.made(resource, cnf={"jkt": "x"}),
        "of nobody at all": issuer.made(resource, sub=None, client_id=None),
        "signed by another key": stranger.sign(right),
        "with an unknown kid": SigningKey().sign(right),
        "with a kid that is no text": unsigned(right, alg="RS256", kid=7) + signature,
        "with a key of its own": stranger.sign(right, kid="x", jwk=stranger.public_jwk),
        "with another body": f"{head}.{issuer.made(resource, sub='root').split('.')[1]}.{signature}",
        "with another signature": f"{head}.{body}.{signature[:-8]}AAAAAAAA",
        "cut": issuer.made(resource)[:-2],
        "with alg none": unsigned(right, kid=issuer.key.kid),
        "with alg none and a signature": unsigned(right, kid=issuer.key.kid) + signature,
        "with HS256 over the public key": _hs256(right, pem, issuer.key.kid),
        "with an algorithm nobody knows": unsigned(right, alg="XS1", kid=issuer.key.kid) + "AA",
        "encrypted": "a.b.c.d.e",
        "no token": "..",
    }


def _pem(public):
    return public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _hs256(claims, secret, kid):
    """What an attacker makes who hopes that the public key is taken for a shared secret."""

    def text(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    head = {"alg": "HS256", "typ": "at+jwt", "kid": kid}
    signed = b".".join(text(json.dumps(part).encode()) for part in (head, claims))
    return (signed + b"." + text(hmac.digest(secret, signed, hashlib.sha256))).decode()


@pytest.mark.requirement("F1", "F5")
async def test_a_token_that_is_wrong_in_one_thing_is_invalid_everywhere(bridge, issuer):
    assert await counts(bridge, FILES, issuer.made(PUBLIC + FILES))
    assert await counts(bridge, FILES, issuer.made([PUBLIC, PUBLIC + FILES]))
    wrong = altered(issuer)
    for why, token in wrong.items():
        for path in (FILES, UNKNOWN, DISABLED):
            response = await post(bridge, path, token)
            assert response.status == 401, why
            assert response.header("WWW-Authenticate") == challenge(path, "invalid_token"), why
    assert "XS1" not in bridge.log()


async def test_a_token_without_a_kid_counts_while_there_is_one_key(bridge, issuer):
    token = issuer.key.sign(issuer.claims(PUBLIC + FILES), kid=None)
    assert "kid" not in jwt.get_unverified_header(token)
    assert await counts(bridge, FILES, token)


@pytest.mark.requirement("NV-11", "F5")
async def test_the_token_of_one_server_is_no_token_of_another(bridge, issuer):
    token = await issuer.token(PUBLIC + FILES, "mcp:acme mcp:rival")
    found = {path: await counts(bridge, path, token) for path in map(path_of, SERVERS)}
    assert [path for path, good in found.items() if good] == [FILES]


@pytest.mark.requirement("F1")
async def test_a_right_token_with_too_little_scope_is_403_and_says_what_is_missing(bridge, issuer):
    for scope in ("mcp:rival", "mcp:acmex", "MCP:ACME", None):
        response = await post(bridge, FILES, issuer.made(PUBLIC + FILES, scope=scope))
        assert response.status == 403
        said = response.header("WWW-Authenticate")
        assert said == challenge(FILES, "insufficient_scope")
    for scopes in ({"scope": "openid mcp:acme"}, {"scope": None, "scp": ["mcp:acme"]}):
        assert await counts(bridge, FILES, issuer.made(PUBLIC + FILES, **scopes))


async def test_too_little_scope_for_a_server_that_is_not_there_is_401(bridge, issuer):
    response = await post(bridge, UNKNOWN, issuer.made(PUBLIC + UNKNOWN, scope=None))
    assert response.status == 401
    elsewhere = await post(bridge, FILES, issuer.made(PUBLIC + UNKNOWN, scope=None))
    assert elsewhere.status == 401


async def test_a_server_may_ask_for_other_scopes_than_the_host(bridge, issuer):
    strict, free = "/t/acme/s/strict/mcp", "/t/acme/s/free/mcp"
    response = await post(bridge, strict, issuer.made(PUBLIC + strict))
    assert response.status == 403
    assert 'scope="mcp:acme mcp:rival"' in response.header("WWW-Authenticate")
    assert await counts(bridge, strict, issuer.made(PUBLIC + strict, scope="mcp:rival mcp:acme"))
    assert await counts(bridge, free, issuer.made(PUBLIC + free, scope=None))


@pytest.mark.requirement("F3")
async def test_an_access_token_in_the_query_does_not_count(bridge, issuer):
    token = issuer.made(PUBLIC + FILES)
    assert await counts(bridge, FILES, token)
    response = await post(bridge, f"{FILES}?access_token={token}")
    assert response.status == 401
    assert response.header("WWW-Authenticate") == challenge(FILES)


@pytest.mark.requirement("F4")
async def test_an_access_token_reaches_neither_the_server_nor_the_log(bridge, issuer):
    token = await issuer.token(PUBLIC + FILES, "mcp:acme")
    body, signature = token.split(".")[1:]
    async with bridge.session("acme.web.files", token=token) as session:
        for seen in (
            await session.text("mirror", value=1),
            await session.text("state"),
            await session.text("env"),
        ):
            assert body not in seen
            assert signature not in seen
    for wrong in altered(issuer).values():
        await post(bridge, FILES, wrong)
    log = bridge.log()
    assert body not in log
    assert signature not in log
    assert not any(wrong in log for wrong in altered(issuer).values() if len(wrong) > 9)


@pytest.mark.requirement("B5")
async def test_a_session_is_its_subjects_over_all_its_tokens_and_nobody_elses(bridge, issuer):
    first = await issuer.token(PUBLIC + FILES, "mcp:acme")
    async with bridge.session("acme.web.files", token=first) as session:
        session.token = await issuer.token(PUBLIC + FILES, "mcp:acme")
        assert session.token != first
        await bridge.reload()  # looks through the sessions, too
        assert await session.text("echo", text="still") == "still"
        for stranger in (
            await issuer.token(PUBLIC + FILES, "mcp:acme", client="other"),
            issuer.made(PUBLIC + FILES, sub="alice"),
            bridge.token("acme.web.files"),
        ):
            message = session.call_of("echo", {"text": "x"}, 1)
            headers = {"Authorization": f"Bearer {stranger}"}
            assert (await session.send(message, headers=headers)).status == 404
        assert await session.text("echo", text="still") == "still"


@pytest.mark.requirement("F7")
async def test_a_session_and_its_stream_end_with_the_last_token_shown(bridge, issuer):
    soon = int(time.time()) + round(4 * PATIENCE)
    first = issuer.made(PUBLIC + FILES, exp=soon)
    async with bridge.session("acme.web.files", token=first) as renewed:
        renewed.token = issuer.made(PUBLIC + FILES)
        await renewed.text("echo", text="x")
        only = issuer.made(PUBLIC + FILES, sub="alice", exp=soon)
        async with bridge.session("acme.web.files", token=only) as session:
            stream = await session.listen()
            assert await stream.event(within=30 * PATIENCE) is None
            assert (await session.send(session.call_of("pid", {}))).status == 401
            await stream.close()
        assert await renewed.text("echo", text="still") == "still"


@pytest.mark.requirement("F7")
async def test_scopes_that_a_server_asks_for_later_end_the_sessions_that_lack_them(own):
    async with Bridge(SERVERS[:1], host=host(own)) as bridge:
        token = own.made(PUBLIC + FILES)
        async with bridge.session("acme.web.files", token=token) as session:
            stream = await session.listen()
            bridge.write([{**SERVERS[0], "scopes": ["mcp:rival"]}])
            await bridge.reload()
            assert await stream.event() is None
            await stream.close()
            assert (await session.send(session.call_of("pid", {}))).status == 403


@pytest.mark.requirement("F5")
async def test_rotated_keys_are_found_and_the_old_ones_count_no_more(own):
    async with Bridge(SERVERS, host=host(own, keys_fresh="1s")) as bridge:
        old = await own.token(PUBLIC + FILES, "mcp:acme")
        async with bridge.session("acme.web.files", token=old) as session:
            stream = await session.listen()
            await own.rotate(SigningKey("ES256"))
            new = await own.token(PUBLIC + FILES, "mcp:acme")
            assert jwt.get_unverified_header(new)["alg"] == "ES256"
            await eventually(lambda: counts(bridge, FILES, new), within=20)
            assert not await counts(bridge, FILES, old)
            assert await stream.event(within=30 * PATIENCE) is None
            await stream.close()


@pytest.mark.requirement("F5")
async def test_while_the_issuer_is_down_its_last_keys_count(own):
    async with Bridge(SERVERS, host=host(own, keys_fresh="1s")) as bridge:
        assert await counts(bridge, FILES, own.made(PUBLIC + FILES))
        await own.stop()
        await eventually(lambda: told(bridge, own, "cannot be had"), within=20)
        assert await counts(bridge, FILES, own.made(PUBLIC + FILES))
        assert not await counts(bridge, FILES, SigningKey().sign(own.claims(PUBLIC + FILES)))
        assert bridge.log().count("cannot be had") == 1
        assert await bridge.metric("mcp_bridge_issuer_ok") == 0
        await own.start()
        await eventually(lambda: told(bridge, own, "can be had again"), within=20)
        assert await bridge.metric("mcp_bridge_issuer_ok") == 1


async def told(bridge, issuer, words):
    """Whether the log says so, after one more token for which the proxy looks at its keys."""
    assert await counts(bridge, FILES, issuer.made(PUBLIC + FILES))
    return words in bridge.log()


@pytest.mark.requirement("F5")
async def test_without_any_keys_a_token_gets_503_and_the_rest_what_it_always_gets(own):
    await own.stop()
    async with Bridge(SERVERS, host=host(own)) as bridge:
        token = own.made(PUBLIC + FILES)
        answers = {await answer(bridge, path, token) for path in (FILES, UNKNOWN)}
        ((status, headers, _),) = answers
        assert (status, dict(headers)["Retry-After"]) == (503, "5")
        assert (await post(bridge, FILES)).status == 401
        assert (await post(bridge, FILES, new_token())).status == 401
        assert await counts(bridge, FILES, bridge.token("acme.web.files"))
        await own.start()

        async def opened():
            return (await post(bridge, FILES, token)).status == 415

        await eventually(opened, within=20)


async def answer(bridge, path, token):
    return (await post(bridge, path, token)).comparable


@pytest.mark.requirement("F5")
async def test_a_flood_of_unknown_keys_asks_the_issuer_a_bounded_number_of_times(own):
    async with Bridge(SERVERS, host=host(own)) as bridge:
        assert await counts(bridge, FILES, own.made(PUBLIC + FILES))
        before, began = own.asked_for_keys(), time.monotonic()
        stranger = SigningKey()
        claims = own.claims(PUBLIC + FILES)
        for number in range(20):
            tokens = [stranger.sign(claims, kid=f"{number}-{one}") for one in range(10)]
            answers = await asyncio.gather(*(post(bridge, FILES, token) for token in tokens))
            assert {response.status for response in answers} == {401}
        most = 1 + (time.monotonic() - began) / 5
        assert own.asked_for_keys() - before <= most
        assert await counts(bridge, FILES, own.made(PUBLIC + FILES))


async def test_a_call_with_an_access_token_asks_the_issuer_nothing(bridge, issuer):
    async with bridge.session(
        "acme.web.files", token=await issuer.token(PUBLIC + FILES, "mcp:acme")
    ) as session:
        before = len(issuer.seen)
        for _ in range(20):
            assert text_of(await session.call("echo", {"text": "x"})) == "x"
        assert len(issuer.seen) == before
