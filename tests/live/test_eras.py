"""Clients of one era, servers of the other, and which process serves whom (PROTOCOL B13, E, G)."""

import json

import pytest

from support.bridge import Bridge
from support.client import LATEST, META, MODERN, Modern, answer_to, code_of, text_of
from support.fakes import echo, entry

IDLE = {"timeouts": {"idle": "300ms", "stop": "2s"}}
MODES = ("shared", "isolated")
URI = "note:///one"
LISTEN = "subscriptions/listen"
ASKS = "test_input_required_result_elicitation"


def server(name, era, *words, **settings):
    return entry("conformance/main", name, "--era", era, *words, **settings)


def subscription(message):
    return message["params"]["_meta"][META + "subscriptionId"]


@pytest.mark.requirement("G1")
@pytest.mark.parametrize("mode", MODES)
async def test_a_server_that_fails_the_question_for_its_era_serves_clients_of_both(mode):
    fails = ("unknown", "invalid", "silent", "exits")
    servers = [server(how, "legacy", "--discover", how, sessions=mode) for how in fails]
    async with Bridge(servers) as bridge:
        for how in fails:
            async with bridge.modern(how) as client:
                assert await client.text("gw_echo", value=how) == f'"{how}"'
            async with bridge.session(how) as session:
                assert await session.text("gw_echo", value=how) == f'"{how}"'
            assert await bridge.metric("mcp_bridge_crashes_total", server=how) == 0


@pytest.mark.requirement("G1")
async def test_a_server_that_hangs_at_the_question_is_not_asked_again():
    slow = {"timeouts": {"start": "6s"}}
    async with Bridge([server("hangs", "legacy", "--discover", "hangs", **slow)]) as bridge:
        async with bridge.modern("hangs") as client:
            assert code_of(await client.call("gw_pid")) == "start_failed"
            assert await client.text("gw_echo", value="x") == '"x"'


@pytest.mark.requirement("G2")
async def test_a_process_that_takes_one_era_only_serves_clients_of_both():
    async with Bridge([server("pinned", "pinned")]) as bridge:
        async with bridge.session("pinned") as session, bridge.modern("pinned") as modern:
            assert await session.text("gw_pid") == await modern.text("gw_pid")
        assert await bridge.metric("mcp_bridge_starts_total", server="pinned") == 1
        assert await bridge.metric("mcp_bridge_crashes_total", server="pinned") == 0


@pytest.mark.requirement("G3")
@pytest.mark.parametrize("mode", MODES)
async def test_a_modern_client_is_served_by_a_handshake_server(mode):
    async with Bridge([echo("files", sessions=mode)]) as bridge:
        async with bridge.modern("files") as client:
            found = (await client.request("server/discover"))["result"]
            assert MODERN in found["supportedVersions"]
            assert await client.text("echo", text="across") == "across"


@pytest.mark.requirement("G4")
async def test_a_handshake_client_is_served_by_a_shared_modern_server_and_refused_elsewhere():
    servers = [server(mode, "modern", sessions=mode) for mode in MODES]
    async with Bridge(servers) as bridge:
        async with bridge.session("shared") as session:
            assert session.version == LATEST
            assert await session.text("gw_echo", value="x") == '"x"'
        async with bridge.session("isolated", opened=False) as session:
            refused = await session.send(session.initialize_of(1))
            assert MODERN in json.dumps(answer_to(refused, 1)["error"])
            assert refused.header("Mcp-Session-Id") is None


@pytest.mark.requirement("G6")
@pytest.mark.parametrize(
    ("mode", "era", "handshake"),
    [("shared", "modern", True), ("isolated", "modern", False), ("isolated", "both", True)],
)
async def test_discover_names_the_handshake_where_it_is_served_only(mode, era, handshake):
    async with Bridge([server("files", era, sessions=mode)]) as bridge:
        async with bridge.modern("files") as client:
            found = (await client.request("server/discover"))["result"]["supportedVersions"]
    assert MODERN in found
    assert (LATEST in found) is handshake


@pytest.mark.requirement("G5")
async def test_what_a_handshake_server_lacks_of_the_modern_era_is_added():
    async with Bridge([echo("files")]) as bridge, bridge.modern("files") as client:
        listed = (await client.request("resources/list"))["result"]
        called = (await client.call("echo", {"text": "x"}))["result"]
        missing = await client.request("resources/read", {"uri": "note:///none"})
        for result in (listed, called):
            assert result["resultType"] == "complete"
            assert result["_meta"][META + "serverInfo"]["name"]
        assert {"ttlMs", "cacheScope"} <= listed.keys()
        assert missing["error"]["code"] == -32602


@pytest.mark.requirement("G5", "E15")
async def test_a_listener_of_a_handshake_server_hears_what_it_asked_for():
    wish = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": [URI]}}
    async with Bridge([echo("files")]) as bridge, bridge.modern("files") as client:
        stream = await client.open_stream(client.request_of(LISTEN, wish, "mine"))
        granted = await stream.event()
        assert granted["params"]["notifications"] == wish["notifications"]
        async with bridge.modern("files") as caller:
            await caller.text("list_changed", tool="fresh")
            await caller.text("touch", uri=URI)
        heard = [await stream.event() for _ in range(2)]
        await stream.close()
    assert [message["method"].split("/", 1)[1] for message in heard] == [
        "tools/list_changed",
        "resources/updated",
    ]
    assert {subscription(message) for message in (granted, *heard)} == {"mine"}


@pytest.mark.requirement("G5", "E18")
async def test_logs_of_a_handshake_server_come_to_the_call_that_asks_for_them():
    async with Bridge([echo("files")]) as bridge, bridge.modern("files") as client:
        for level, wanted in ((None, 0), ("debug", 1)):
            meta = {} if level is None else {META + "logLevel": level}
            params = {"name": "log", "arguments": {"data": "x"}, "_meta": meta}
            response = await client.send(client.request_of("tools/call", params, 1))
            told = [one for one in response.messages if one.get("method")]
            assert [one["method"] for one in told] == ["notifications/message"] * wanted


@pytest.mark.requirement("G5", "E19")
async def test_a_question_of_an_isolated_handshake_server_is_answered_by_a_retry():
    form = {META + "clientCapabilities": {"elicitation": {"form": {}}}}
    async with Bridge([server("asks", "legacy", sessions="isolated")]) as bridge:
        async with bridge.modern("asks") as client:
            call = {"name": ASKS, "arguments": {}, "_meta": form}
            first = (await client.request("tools/call", call))["result"]
            assert first["resultType"] == "input_required"
            filled = {"action": "accept", "content": {"name": "Ada"}}
            answers = dict.fromkeys(first["inputRequests"], filled)
            retry = {**call, "inputResponses": answers, "requestState": first["requestState"]}
            assert text_of(await client.request("tools/call", retry)) == "Hello, Ada!"


@pytest.mark.requirement("E13")
@pytest.mark.parametrize("mode", MODES)
async def test_a_servers_request_never_reaches_a_modern_stream(mode):
    async with Bridge([echo("files", sessions=mode)]) as bridge, bridge.modern("files") as client:
        message = client.call_of("ask", {"method": "roots/list"}, 1)
        response = await client.send(message)
        assert not [one for one in response.messages if "method" in one and "id" in one]
        said = answer_to(response, 1)
        if "result" in said:  # the refusal that the server got in the client's place
            assert json.loads(text_of(said))["error"]["code"]
        else:
            assert said["error"]["code"] == -32021


@pytest.mark.requirement("E16")
async def test_a_listener_gets_the_closing_result_when_its_server_goes():
    async with Bridge([echo("files"), echo("stays")]) as bridge:
        async with bridge.modern("files") as client:
            wish = {"notifications": {"toolsListChanged": True}}
            stream = await client.open_stream(client.request_of(LISTEN, wish, 7))
            await stream.event()
            bridge.write([echo("stays")])
            await bridge.reload()
            closing = await stream.event()
            assert (closing["id"], closing["result"]["resultType"]) == (7, "complete")
            assert closing["result"]["_meta"][META + "subscriptionId"] == 7
            assert await stream.event() is None
            await stream.close()


@pytest.mark.requirement("E20")
@pytest.mark.parametrize(("scope", "starts"), [("public", 1), ("private", 2)])
async def test_a_private_list_is_kept_for_the_token_that_got_it(scope, starts):
    async with Bridge([server("files", "modern", "--scope", scope, **IDLE)]) as bridge:
        other = Modern(bridge.url("files"), await bridge.more_token("files"))
        async with bridge.modern("files") as client, other:
            listed = await client.tools()
            await bridge.in_state("files", "sleeping")
            assert await client.tools() == listed
            assert await bridge.state("files") == "sleeping"
            assert await other.tools() == listed
            assert await bridge.metric("mcp_bridge_starts_total", server="files") == starts


@pytest.mark.requirement("B13")
@pytest.mark.parametrize(("mode", "same"), [("shared", True), ("isolated", False)])
async def test_each_session_of_an_isolated_server_has_a_process_of_its_own(mode, same):
    async with Bridge([echo("files", sessions=mode)]) as bridge:
        async with bridge.session("files") as one, bridge.session("files") as two:
            first = await one.text("pid")
            assert (await two.text("pid") == first) is same
            assert await one.text("pid") == first


@pytest.mark.requirement("E21")
@pytest.mark.parametrize(("mode", "same"), [("shared", True), ("isolated", False)])
async def test_modern_requests_share_a_process_of_all_or_of_one_token(mode, same):
    async with Bridge([echo("files", sessions=mode)]) as bridge:
        other = Modern(bridge.url("files"), await bridge.more_token("files"))
        async with bridge.modern("files") as client, bridge.modern("files") as again, other:
            first = await client.text("pid")
            assert await again.text("pid") == first
            assert (await other.text("pid") == first) is same
