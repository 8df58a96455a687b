"""Pages of other origins: only where host.toml names them, and then on every answer (F8)."""

import json

import pytest
import pytest_asyncio

from support.bridge import Bridge, new_token
from support.fakes import echo
from support.wire import exchange

pytestmark = pytest.mark.asyncio(loop_scope="module")

APP = "https://app.example"
FILES = "/t/default/s/files/mcp"
UNKNOWN = "/t/acme/p/web/s/nobody/mcp"
NEEDED = {
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "x-api-key",
    "x-project",
}
ASKED = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "mcp-method"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    http = {"allowed_origins": [APP], "cors_headers": ["Mcp-Param-Region"]}
    async with Bridge([echo("files")], host={"http": http}) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plain():
    """A host without configured origins."""
    async with Bridge([echo("files")]) as running:
        yield running


def cors(response):
    return {k.lower(): v for k, v in response.headers if k.lower().startswith("access-control-")}


async def preflight(bridge, path, **headers):
    return await exchange(bridge.base + path, "OPTIONS", {**ASKED, "Host": "127.0.0.1", **headers})


@pytest.mark.requirement("F8")
@pytest.mark.parametrize("path", [FILES, UNKNOWN])
async def test_a_preflight_of_a_configured_origin_needs_no_token(bridge, path):
    response = await preflight(bridge, path, Origin=APP)
    said = cors(response)
    assert (response.status, response.body) == (204, b"")
    assert said["access-control-allow-origin"] == APP
    assert set(said["access-control-allow-methods"].split(", ")) == {"GET", "POST", "DELETE"}
    listed = {name.lower() for name in said["access-control-allow-headers"].split(", ")}
    assert listed == NEEDED | {"mcp-param-region"}
    assert "access-control-allow-credentials" not in said
    assert response.header("Vary") == "Origin"


@pytest.mark.requirement("F8", "A3")
@pytest.mark.parametrize("origin", ["https://evil.example", "https://app.example.evil", "null"])
async def test_another_origin_is_403_and_is_told_nothing(bridge, origin):
    for response in (
        await preflight(bridge, FILES, Origin=origin),
        await exchange(bridge.base + FILES, "POST", {"Host": "127.0.0.1", "Origin": origin}, b"{}"),
    ):
        assert response.status == 403
        assert cors(response) == {}


@pytest.mark.requirement("F8")
@pytest.mark.parametrize("era", ["session", "modern"])
async def test_every_answer_to_a_configured_origin_can_be_read_by_its_page(bridge, era):
    async with getattr(bridge, era)("files") as client:
        message = client.call_of("echo", {"text": "x"})
        for changed in (
            {},
            {"Accept": "text/event-stream"},
            {"Authorization": None},
            {"Authorization": f"Bearer {new_token()}"},
            {"Content-Type": "text/plain"},
        ):
            response = await client.send(message, headers={"Origin": APP, **changed})
            said = cors(response)
            assert said["access-control-allow-origin"] == APP, changed
            exposed = {name.lower() for name in said["access-control-expose-headers"].split(", ")}
            assert exposed == {"mcp-session-id", "www-authenticate"}


@pytest.mark.requirement("F8")
async def test_streams_carry_the_headers_too(bridge):
    async with bridge.session("files") as session:
        call = session.call_of("wait", {"tag": "x"}, 1)
        own = await session.open_stream(method="GET", headers={"Accept": "text/event-stream", "Origin": APP})  # fmt: skip
        progress = await session.open_stream(call, headers={"Accept": "text/event-stream", "Origin": APP})  # fmt: skip
        for stream in (own, progress):
            assert stream.status == 200
            assert stream.header("Content-Type") == "text/event-stream"
            assert stream.header("Access-Control-Allow-Origin") == APP
            await stream.close()


@pytest.mark.requirement("F8")
async def test_nothing_is_said_without_configuration(plain):
    local = "http://localhost:5173"
    assert cors(await preflight(plain, FILES, Origin=local)) == {}
    assert (await preflight(plain, FILES, Origin=local)).status == 401
    async with plain.session("files") as session:
        response = await session.send(session.call_of("echo", {"text": "x"}), headers={"Origin": local})  # fmt: skip
        assert response.status == 200
        assert cors(response) == {}
        assert response.header("Vary") is None


async def test_a_request_without_an_origin_is_answered_as_ever(bridge, plain):
    answers = []
    for running in (bridge, plain):
        async with running.session("files") as session:
            response = await session.send(session.call_of("echo", {"text": "x"}, 1))
            answers.append((response.comparable, json.loads(response.body)["id"]))
    assert answers[0] == answers[1]


async def test_options_that_is_no_preflight_is_checked_like_any_other(bridge):
    response = await exchange(bridge.base + FILES, "OPTIONS", {"Host": "127.0.0.1", "Origin": APP})
    assert response.status == 401
    async with bridge.session("files") as session:
        assert (await session.send(method="OPTIONS", headers={"Origin": APP})).status == 405


@pytest.mark.requirement("F5", "F8")
async def test_a_page_may_read_where_to_get_a_token():
    http = {"allowed_origins": [APP], "public_url": "https://mcp.example"}
    oauth = {"issuer": "https://id.example"}  # nobody asks it for anything here
    async with Bridge([echo("files")], host={"http": http, "oauth": oauth}) as bridge:
        path = "/.well-known/oauth-protected-resource" + FILES
        assert (await preflight(bridge, path, Origin=APP)).status == 204
        for origin, status in ((APP, 200), ("https://evil.example", 403)):
            headers = {"Host": "mcp.example", "Origin": origin}
            response = await exchange(bridge.base + path, headers=headers)
            assert response.status == status
            assert bool(cors(response)) is (status == 200)
