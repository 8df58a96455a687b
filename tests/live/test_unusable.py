"""What cannot be passed on costs that message alone, in whichever direction it goes."""

import json

import pytest

from support.bridge import Bridge
from support.client import code_of, error_of
from support.fakes import echo, hostile

SURROGATE, DEEP = '"\\ud800"', "[" * 300 + "]" * 300
UPDATED = '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":?}}'
MESSAGE = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":?}}'


@pytest.mark.requirement("H2")
@pytest.mark.parametrize("line", [MESSAGE.replace("?", SURROGATE), MESSAGE.replace("?", DEEP)])
async def test_a_notification_that_cannot_be_written_again_is_dropped_and_counted(line):
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        pid = await session.text("pid")
        await session.text("say", line=line)
        assert await session.text("pid") == pid
        assert await bridge.metric("mcp_bridge_dropped_lines_total", server="files") == 1


async def test_an_update_of_something_that_is_no_uri_concerns_nobody():
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        await session.request("resources/subscribe", {"uri": "note:///one"})
        pid = await session.text("pid")
        await session.text("say", line=UPDATED.replace("?", "[1]"))
        assert await session.text("pid") == pid


@pytest.mark.parametrize("token", ["\ud800", [1], {"a": 1}, True, 1.5])
async def test_a_progress_token_that_is_no_text_or_integer_is_refused(token):
    async with Bridge([echo("files")]) as bridge, bridge.session("files") as session:
        message = session.call_of("progress", {"steps": 1}, 7, progress=token)
        response = await session.send(message, body=json.dumps(message).encode())
        assert code_of(json.loads(response.body)) == "bad_text"
        assert await session.text("echo", text="lives") == "lives"


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
