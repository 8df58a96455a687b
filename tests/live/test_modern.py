"""The requests of 2026-07-28, which stand alone (PROTOCOL E)."""

import asyncio
import base64
import json

import pytest
import pytest_asyncio

from support.bridge import Bridge
from support.client import META, MODERN, answer_to, text_of
from support.fakes import echo
from support.wire import exchange

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    async with Bridge([echo("files")]) as running:
        yield running


def code(response):
    return response.messages[0]["error"]["code"]


@pytest.mark.requirement("E1")
async def test_both_eras_work_at_once_on_one_url(bridge):
    async with bridge.session("files") as old, bridge.modern("files") as new:
        answers = await asyncio.gather(old.text("pid"), new.text("pid"))
        assert answers[0] == answers[1]


@pytest.mark.requirement("E2")
async def test_discover_names_what_is_served(bridge):
    async with bridge.modern("files") as client:
        result = (await client.request("server/discover"))["result"]
        assert MODERN in result["supportedVersions"]
        assert set(result["capabilities"]) <= {"tools", "resources", "logging", "prompts"}
        assert result["resultType"] == "complete"


async def test_a_modern_list_and_call_carry_what_the_revision_wants(bridge):
    async with bridge.modern("files") as client:
        listed = (await client.request("tools/list"))["result"]
        assert listed["resultType"] == "complete"
        assert {"ttlMs", "cacheScope"} <= set(listed)
        called = (await client.call("echo", {"text": "x"}))["result"]
        assert called["resultType"] == "complete"


@pytest.mark.requirement("E3", "E4", "E6")
async def test_a_header_that_differs_from_the_body_is_a_mismatch(bridge):
    async with bridge.modern("files") as client:
        for headers in (
            {"Mcp-Method": None},
            {"Mcp-Method": "tools/list"},
            {"Mcp-Method": "Tools/Call"},
            {"Mcp-Name": None},
            {"Mcp-Name": "env"},
            {"Mcp-Name": "=?base64?ZW52?="},
            {"MCP-Protocol-Version": "2025-11-25"},
        ):
            response = await client.send(client.call_of("echo", {}, 1), headers=headers)
            assert (response.status, code(response)) == (400, -32020), headers
            assert response.messages[0]["id"] == 1


@pytest.mark.requirement("E4")
async def test_header_names_have_no_case_and_names_may_be_base64(bridge):
    async with bridge.modern("files") as client:
        name = "=?base64?" + base64.b64encode(b"echo").decode() + "?="
        headers = {
            "Mcp-Method": None,
            "mcp-method": "tools/call",
            "Mcp-Name": None,
            "MCP-NAME": name,
        }
        response = await client.send(client.call_of("echo", {"text": "x"}, 1), headers=headers)
        assert text_of(answer_to(response, 1)) == "x"


@pytest.mark.requirement("E6")
async def test_an_unknown_modern_version_is_told_which_are_served(bridge):
    async with bridge.modern("files") as client:
        client.version = "2099-01-01"
        response = await client.send(client.call_of("echo", {}, 1))
        assert (response.status, code(response)) == (400, -32022)
        data = response.messages[0]["error"]["data"]
        assert data["requested"] == "2099-01-01"
        assert MODERN in data["supported"]


@pytest.mark.requirement("E7")
@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
async def test_a_modern_request_without_its_envelope_is_invalid(bridge, missing):
    async with bridge.modern("files") as client:
        message = client.prepare(client.call_of("echo", {}, 1))
        del message["params"]["_meta"][META + missing]
        headers = client.headers(message)
        response = await client.send(headers=headers, body=json.dumps(message).encode())
        assert (response.status, code(response)) == (400, -32602)


@pytest.mark.requirement("E8")
@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "no/such/method"])
async def test_a_method_that_the_modern_era_lacks_is_404(bridge, method):
    async with bridge.modern("files") as client:
        response = await client.send(client.request_of(method, {}, 1))
        assert (response.status, code(response)) == (404, -32601)


@pytest.mark.requirement("E8")
async def test_a_method_that_the_server_lacks_is_404_with_its_own_error(bridge):
    async with bridge.modern("files") as client:
        response = await client.send(client.request_of("completion/complete", {}, 1))
        assert (response.status, code(response)) == (404, -32601)


@pytest.mark.requirement("E12")
async def test_a_response_as_a_modern_body_is_refused_and_a_notification_is_202(bridge):
    async with bridge.modern("files") as client:
        response = await client.send({"jsonrpc": "2.0", "id": 1, "result": {}})
        assert 400 <= response.status < 500
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        response = await client.send(note)
        assert (response.status, response.body) == (202, b"")


async def test_a_batch_is_refused_in_the_modern_era(bridge):
    async with bridge.modern("files") as client:
        response = await client.send([client.prepare(client.call_of("echo", {}, 1))])
        assert (response.status, code(response)) == (400, -32600)


@pytest.mark.requirement("E4")
async def test_a_repeated_header_is_refused(bridge):
    async with bridge.modern("files") as client:
        message = client.call_of("echo", {}, 1)
        body = json.dumps(client.prepare(message)).encode()
        for name, second in (("Mcp-Method", "tools/call"), ("Mcp-Name", "env")):
            headers = [*client.headers(message).items(), (name, second)]
            assert (await exchange(client.url, "POST", headers, body)).status == 400
