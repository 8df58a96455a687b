"""What cannot be passed on costs that message alone, in whichever direction it goes."""

import asyncio
import json

import pytest

from support.bridge import Bridge
from support.client import code_of, dumps, error_of
from support.fakes import echo, hostile
from support.waiting import eventually
from support.wire import encode, raw_exchange

LONE, SURROGATE, DEEP = "\ud800", '"\\ud800"', "[" * 300 + "]" * 300
UPDATED = '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":?}}'
MESSAGE = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":?}}'
PROGRESS = (
    '{"jsonrpc":"2.0","method":"notifications/progress",'
    '"params":{"progressToken":N,"progress":1,"message":?}}'
)
HELLO = (
    '{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":?,'
    '"serverInfo":{"name":"\\ud800","version":"1"}}}'
)
TOOLS = '{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"a","title":"\\ud800"},{"name":"b"}]}}'


@pytest.mark.requirement("H2")
async def test_a_notification_reaches_the_client_as_the_server_wrote_it():
    line = MESSAGE.replace("?", SURROGATE)
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        await session.text("pid")
        stream = await session.listen()
        message = session.call_of("say", {"line": line}, 1)
        await session.send(message, headers={"Accept": "application/json"})
        assert await stream.event() == json.loads(line)
        await stream.close()


@pytest.mark.requirement("H2")
@pytest.mark.parametrize("depth", [300, 600, 985, 5000])
@pytest.mark.parametrize("inner", ["1", SURROGATE])
async def test_no_depth_of_a_line_costs_more_than_that_line(depth, inner):
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        pid = await session.text("pid")
        nested = "[" * depth + inner + "]" * depth
        for line in (
            nested,
            MESSAGE.replace("?", nested),
            '{"id":1,"method":"ping","x":' + nested + "}",
        ):
            await session.text("say", line=line)
        assert await session.text("pid") == pid
        assert await bridge.metric("mcp_bridge_crashes_total", server="files") == 0


@pytest.mark.requirement("H2")
async def test_progress_that_cannot_be_written_again_is_dropped_and_counted():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        message = session.call_of("wait", {"tag": "t"}, 7, progress="p")
        opening = asyncio.create_task(session.open_stream(message))
        number = await eventually(lambda: waiting(bridge))
        progress = PROGRESS.replace("N", str(number))
        async with bridge.modern("files") as other:
            await other.text("say", line=progress.replace("?", DEEP))
            await other.text("say", line=progress.replace("?", SURROGATE))
            call = await opening
            assert (await call.event())["params"]["message"] == "\ufffd"
            await other.text("release", tag="t")
        assert (await call.until(7))["result"]
        dropped = {"server": "files", "reason": "not_json_rpc"}
        assert await bridge.metric("mcp_bridge_dropped_lines_total", **dropped) == 1
        await call.close()


async def waiting(bridge):
    """The private id under which the server holds its one open `wait`."""
    async with bridge.modern("files") as client:
        numbers = json.loads(await client.text("state"))["numbers"]
    return numbers[0] if numbers else None


async def test_an_update_of_something_that_is_no_uri_concerns_nobody():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        await session.request("resources/subscribe", {"uri": "note:///one"})
        pid = await session.text("pid")
        await session.text("say", line=UPDATED.replace("?", "[1]"))
        assert await session.text("pid") == pid


@pytest.mark.parametrize("token", [[1], {"a": 1}, True, 1.5])
async def test_a_progress_token_that_is_no_text_or_integer_is_refused(token):
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        response = await session.send(session.call_of("progress", {"steps": 1}, 7, progress=token))
        assert code_of(json.loads(response.body)) == "bad_text"
        assert await session.text("echo", text="lives") == "lives"


@pytest.mark.parametrize(
    "message",
    [
        {"id": LONE, "method": "tools/list"},
        {"id": 1, "method": LONE},
        {"id": 1, "method": "tools/call", "params": {"name": LONE}},
        {"id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {LONE: 1}}},
        {
            "id": 1,
            "method": "tools/call",
            "params": {"name": "echo", "arguments": json.loads(DEEP)},
        },
        {"id": 1, "method": "tools/call", "params": {"_meta": {"progressToken": LONE}}},
        {"id": 1, "method": "resources/subscribe", "params": {"uri": LONE}},
        {"method": "notifications/cancelled", "params": {"requestId": LONE}},
        {"method": "notifications/cancelled", "params": {"requestId": 1, "reason": LONE}},
    ],
)
@pytest.mark.parametrize("era", ["session", "modern"])
async def test_a_message_that_nobody_could_write_again_is_refused_at_the_edge(era, message):
    async with Bridge([echo("files")]) as bridge, getattr(bridge, era)("files") as client:
        pid = await client.text("pid")
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        response = await client.send(client.request_of("ping"), body=body)
        assert response.status == 400, response
        assert json.loads(response.body)["error"]["code"] == -32700
        assert await client.text("pid") == pid


async def test_a_large_message_that_would_be_read_slowly_is_refused():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        message = session.call_of("echo", {"text": "x", "many": [1] * 40_000}, 1)
        assert (await session.send(message)).status == 200
        slow = json.dumps(message).replace("[1,", "[" + "9" * 25 + ",").encode()
        response = await session.send(message, body=slow)
        assert response.status == 400
        assert b"20 digits" in response.body


@pytest.mark.parametrize("uri", [[1], {"a": 1}, 5])
async def test_an_unsubscription_from_what_is_no_uri_is_no_fault_of_the_proxy(uri):
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        response = await session.send(session.request_of("resources/unsubscribe", {"uri": uri}, 1))
        assert response.status == 200


async def test_a_subscription_to_a_uri_without_end_is_refused():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        answer = await session.request("resources/subscribe", {"uri": "note:///" + "x" * 10_000})
        assert code_of(answer) == "bad_text"


@pytest.mark.parametrize(
    ("name", "status"), [("MCP-Protocol-Version", b"400"), ("Mcp-Session-Id", b"404")]
)
@pytest.mark.parametrize("era", ["session", "modern"])
async def test_a_header_that_is_no_text_is_refused_as_any_other_wrong_one(era, name, status):
    async with Bridge([echo("files")]) as bridge, getattr(bridge, era)("files") as client:
        request = client.call_of("pid", {}, 1)
        headers = {**client.headers(client.prepare(request)), name: "?", "Connection": "close"}
        raw = encode("POST", client.target, headers, dumps(client.prepare(request)))
        answer = await raw_exchange(bridge.base, raw.replace(b": ?", b": \xff"))
        # The modern era knows no session, so that its id is of no interest.
        wanted = b"200" if (era, name) == ("modern", "Mcp-Session-Id") else status
        assert answer.split(b" ", 2)[1] == wanted, answer


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "Origin",
        "Content-Type",
        "Content-Encoding",
        "Mcp-Session-Id",
        "MCP-Protocol-Version",
    ],
)
async def test_a_header_that_is_sent_twice_is_refused(name):
    values = {"Origin": "http://localhost", "Content-Encoding": "identity"}
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        await session.text("pid")
        request = session.call_of("pid", {}, 1)
        own = {"Connection": "close", **session.headers(request)}
        value = values.get(name) or own.pop(name)
        for times, status in ((1, b"200"), (2, b"400")):
            pairs = [*own.items(), *[(name, value)] * times]
            raw = encode("POST", session.target, pairs, dumps(request))
            assert (await raw_exchange(bridge.base, raw)).split(b" ", 2)[1] == status


async def test_an_initialize_result_with_half_a_character_is_mended():
    async with Bridge([hostile("says", "bad", HELLO.replace("?", '{"tools":{}}'))]) as bridge:
        async with bridge.session("bad") as session:
            assert await session.text("echo", text="x") == "x"
        async with bridge.modern("bad") as client:
            answer = await client.request("server/discover")
            assert "\ufffd" in json.dumps(answer["result"], ensure_ascii=False)


@pytest.mark.parametrize("capabilities", ["[1]", "5", '{"a":' + DEEP + "}"])
async def test_capabilities_that_are_none_fail_the_start(capabilities):
    server = hostile("says", "bad", HELLO.replace("?", capabilities))
    async with Bridge([server]) as bridge, bridge.modern("bad") as client:
        answer = await client.request("server/discover")
        assert error_of(answer)["data"]["death"]["cause"] == "handshake"


async def test_tools_with_half_a_character_are_listed_although_some_are_denied():
    server = hostile("says", "bad", HELLO.replace("?", "{}"), TOOLS, TOOLS, tools={"deny": ["b"]})
    async with Bridge([server]) as bridge:
        for client in (bridge.session("bad"), bridge.modern("bad")):
            async with client:
                listed = (await client.request("tools/list"))["result"]["tools"]
                assert listed == [{"name": "a", "title": "\ufffd"}]


async def test_what_a_server_says_of_its_failure_holds_no_secret_and_no_second_line():
    why = "no licence\nERROR forged\x1b[2J token=hunter2hunter2 sk-0123456789abcdef"
    refusal = {"jsonrpc": "2.0", "id": "ID", "error": {"code": -32603, "message": why}}
    server = hostile("says", "bad", json.dumps(refusal).replace('"ID"', "ID"))
    async with Bridge([server]) as bridge, bridge.modern("bad") as client:
        message = error_of(await client.request("server/discover"))["message"]
        for place in (message, bridge.log(), json.dumps(await bridge.status())):
            assert "no licence" in place
            for bad in ("hunter2", "sk-0123", "\x1b", "\nERROR forged", "\\nERROR forged"):
                assert bad not in place


@pytest.mark.parametrize(("mode", "ready"), [("big_hello", True), ("big_junk_hello", False)])
async def test_an_initialize_result_of_any_size_is_read_whole(mode, ready):
    async with Bridge([hostile(mode, "files")]) as bridge, bridge.modern("files") as client:
        answer = await client.call("echo", {"text": "x"})
        if ready:
            assert "result" in answer
        else:
            assert error_of(answer)["data"]["death"]["cause"] == "handshake"
            # The server is given up, not its keeper: the next call tries again.
            assert code_of(await client.call("echo", {"text": "x"})) == "start_failed"
