"""Sessions of the handshake era (PROTOCOL B, C1-C5)."""

import hashlib

import pytest
import pytest_asyncio

from support.bridge import Bridge, new_token
from support.client import MODERN, Session, answer_to, text_of
from support.fakes import echo
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

SSE = {"Accept": "text/event-stream"}
CHANGED = "notifications/tools/list_changed"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    servers = [echo("files"), echo("other"), echo("files", tenant="acme", project="web")]
    async with Bridge(servers) as running:
        yield running


def code(response):
    return response.messages[0]["error"]["code"]


@pytest.mark.requirement("B1")
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_each_handshake_version_is_served(bridge, version):
    async with bridge.session("files", version=version) as session:
        assert session.version == version
        assert len(session.session) >= 22
        assert session.session.isascii() and session.session.isprintable()
        assert "echo" in await session.tools()
        assert await session.text("echo", text="x") == "x"


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("offer", ["1999-01-01", "2099-01-01", MODERN])
async def test_an_unknown_version_is_answered_with_the_servers(bridge, offer):
    async with bridge.session("files", version=offer) as session:
        assert session.version == "2025-11-25"


@pytest.mark.requirement("B2")
async def test_initialize_invents_no_capability(bridge):
    async with bridge.session("files") as session:
        offered = session.initialized["capabilities"]
        assert set(offered) <= {"tools", "resources", "logging", "prompts"}
        assert {"tools", "resources", "logging"} <= set(offered)


@pytest.mark.requirement("B3")
async def test_a_request_without_its_session_is_400(bridge):
    async with bridge.session("files") as session:
        for method in ("POST", "GET", "DELETE"):
            message = session.call_of("echo", {}) if method == "POST" else None
            headers = {"Mcp-Session-Id": None, **(SSE if method == "GET" else {})}
            assert (await session.send(message, method=method, headers=headers)).status == 400


@pytest.mark.requirement("B4")
@pytest.mark.parametrize("ident", ["junk", "x" * 43, "0", "ä", "a b"])
async def test_an_unknown_session_is_404_on_every_method(bridge, ident):
    async with bridge.session("files") as session:
        await assert_unknown(session, ident)


async def assert_unknown(session, ident):
    for method in ("POST", "GET", "DELETE"):
        message = session.call_of("echo", {}) if method == "POST" else None
        headers = {"Mcp-Session-Id": ident, **(SSE if method == "GET" else {})}
        response = await session.send(message, method=method, headers=headers)
        assert response.status == 404, (method, response)


@pytest.mark.requirement("B4", "B6")
async def test_a_deleted_session_is_404_and_its_stream_ends(bridge):
    async with bridge.session("files") as session:
        stream = await session.listen()
        assert 200 <= (await session.delete()).status < 300
        assert await stream.event() is None
        await stream.close()
        await assert_unknown(session, session.session)


@pytest.mark.requirement("B5")
async def test_a_session_is_unknown_to_every_other_server_and_token(bridge):
    async with bridge.session("files") as session:
        for instance in ("other", "acme.web.files"):
            async with bridge.session(instance, opened=False) as foreign:
                foreign.version = session.version
                await assert_unknown(foreign, session.session)
        assert await session.text("echo", text="still mine") == "still mine"


@pytest.mark.requirement("B5")
async def test_a_session_is_unknown_to_another_token_of_the_same_server(bridge):
    second = new_token()
    extra = echo("two", tokens_sha256=[hashlib.sha256(second.encode()).hexdigest()])
    async with Bridge([extra]) as running, running.session("two") as mine:
        async with Session(running.url("two"), second, opened=False) as foreign:
            foreign.version = mine.version
            await assert_unknown(foreign, mine.session)
        async with Session(running.url("two"), second) as other:
            await assert_unknown(mine, other.session)
        assert await mine.text("echo", text="mine") == "mine"


@pytest.mark.requirement("B8")
async def test_initialize_inside_a_session_is_refused(bridge):
    async with bridge.session("files") as session:
        response = await session.send(session.initialize_of(1))
        assert (response.status, code(response)) == (400, -32600)
        assert await session.text("echo", text="lives") == "lives"


@pytest.mark.requirement("B9")
@pytest.mark.parametrize("version", ["1999-01-01", "x", ""])
async def test_an_unsupported_version_header_is_400(bridge, version):
    async with bridge.session("files") as session:
        headers = {"MCP-Protocol-Version": version}
        assert (await session.send(session.call_of("echo", {}), headers=headers)).status == 400


@pytest.mark.requirement("B10")
async def test_without_a_version_header_the_negotiated_one_counts(bridge):
    async with bridge.session("files") as session:
        message = [session.call_of("echo", {}, 1)]
        response = await session.send(message, headers={"MCP-Protocol-Version": None})
        assert (response.status, code(response)) == (400, -32600)


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
async def test_a_batch_is_refused_where_the_version_has_none(bridge, version):
    async with bridge.session("files", version=version) as session:
        for batch in ([], [session.call_of("echo", {}, 1)], [1]):
            response = await session.send(batch)
            assert (response.status, code(response)) == (400, -32600)


@pytest.mark.requirement("A12")
async def test_each_request_of_a_batch_is_answered_at_2025_03_26(bridge):
    async with bridge.session("files", version="2025-03-26") as session:
        batch = [
            session.call_of("echo", {"text": "one"}, 1),
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
            session.call_of("echo", {"text": "two"}, "1"),
            session.request_of("no/such/method", {}, 3),
        ]
        response = await session.send(batch)
        assert response.status == 200
        flat = [
            m for part in response.messages for m in (part if isinstance(part, list) else [part])
        ]
        texts = {repr(m["id"]): text_of(m) for m in flat if "result" in m}
        assert texts == {"1": "one", "'1'": "two"}
        assert [m["error"]["code"] for m in flat if m["id"] == 3] == [-32601]


@pytest.mark.parametrize("wrong", [1, {}, {"jsonrpc": "2.0", "id": 9}, "initialize"], ids=repr)
async def test_a_batch_with_a_wrong_member_is_refused_and_the_session_lives(bridge, wrong):
    async with bridge.session("files", version="2025-03-26") as session:
        member = session.initialize_of(9) if wrong == "initialize" else wrong
        response = await session.send([session.call_of("echo", {"text": "x"}, 1), member])
        assert response.status in {200, 400}
        flat = response.messages[0] if response.status == 200 else response.messages
        assert -32600 in [m["error"]["code"] for m in flat if "error" in m]
        assert await session.text("echo", text="lives") == "lives"


@pytest.mark.requirement("A14")
async def test_notifications_and_responses_are_202_and_empty(bridge):
    async with bridge.session("files") as session:
        for message in (
            {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}},
            {"jsonrpc": "2.0", "id": 5, "result": {}},
            {"jsonrpc": "2.0", "id": 5, "error": {"code": -1, "message": "no"}},
        ):
            response = await session.send(message)
            assert (response.status, response.body) == (202, b"")


async def test_a_notification_sent_with_an_id_does_not_confuse_the_server(bridge):
    async with bridge.session("files") as session:
        response = await session.send(session.request_of("notifications/initialized", {}, 9))
        assert "error" in answer_to(response, 9)
        assert await session.text("echo", text="fine") == "fine"


@pytest.mark.requirement("C4")
async def test_a_session_has_one_get_stream(bridge):
    async with bridge.session("files") as session:
        stream = await session.listen()
        assert stream.status == 200
        second = await session.send(method="GET", headers=SSE)
        assert second.status == 409
        await stream.close()

        async def again():
            fresh = await session.listen()
            await fresh.close()
            return fresh.status == 200

        await eventually(again)


@pytest.mark.requirement("A9")
async def test_a_get_that_takes_no_stream_is_406(bridge):
    async with bridge.session("files") as session:
        response = await session.send(method="GET", headers={"Accept": "application/json"})
        assert response.status == 406


@pytest.mark.requirement("C2")
async def test_a_change_reaches_the_get_stream_of_every_session_once(bridge):
    async with bridge.session("files") as one, bridge.session("files") as two:
        streams = [await one.listen(), await two.listen()]
        async with bridge.modern("files") as caller:
            await caller.text("list_changed", tool="fresh")
        assert "fresh" in await one.tools()
        for session, stream in zip((one, two), streams, strict=True):
            assert (await stream.until(CHANGED))["method"] == CHANGED
            await session.delete()  # which ends the stream, once all of it is read
            assert await stream.event() is None
            await stream.close()


@pytest.mark.requirement("C5")
async def test_a_notification_waits_for_the_get_stream(bridge):
    async with bridge.session("files") as session:
        async with bridge.modern("files") as caller:
            await caller.text("list_changed", tool="waiting")
        stream = await session.listen()
        await stream.until(CHANGED)
        await stream.close()


@pytest.mark.requirement("C1")
async def test_what_belongs_to_a_call_comes_on_its_stream_before_the_answer(bridge):
    async with bridge.session("files") as session:
        stream = await session.open_stream(session.call_of("progress", {"nonce": "n"}, 1, "t"))
        seen = []
        while (message := await stream.event()) is not None:
            seen.append(message.get("method", "answer"))
        assert seen == ["notifications/progress"] * 3 + ["answer"]
        await stream.close()


async def test_a_subscription_belongs_to_its_session(bridge):
    uri = "note:///one"
    async with bridge.session("other") as one, bridge.session("other") as two:
        mine, others = await one.listen(), await two.listen()
        await one.request("resources/subscribe", {"uri": uri})
        async with bridge.modern("other") as caller:
            await caller.text("touch", uri=uri)
            message = await mine.until("notifications/resources/updated")
            assert message["params"]["uri"] == uri
            await caller.text("list_changed", tool="x")
            assert (await others.event())["method"] == CHANGED
        await one.request("resources/unsubscribe", {"uri": uri})
        await mine.close()
        await others.close()
