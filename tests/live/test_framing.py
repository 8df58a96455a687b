"""Bytes cross unchanged, and lines that are no answers harm nobody (PROTOCOL A19, H; BUGS B)."""

import asyncio
import json

import pytest
import pytest_asyncio

from support.bridge import Bridge
from support.client import answer_to, code_of, error_of, text_of
from support.fakes import echo, hostile
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXTS = {
    "line separators": "a\u2028b\u2029c\u0085d",
    "NUL": "a\u0000b",
    "surrogate pair": "\U0001f600 \U0010ffff",
    "combining": "e\u0301 \u00e9",
    "newlines": "a\nb\r\nc\rd",
    "quotes": '\\"id":1,"jsonrpc"\\u0000',
    "looks like an answer": '{"jsonrpc":"2.0","id":1,"result":{}}\n',
    "four widths": "aé☃\U0001f600" * 50,
}
RESULTS = [
    '{"n":1.0,"big":9007199254740993,"e":1E400,"neg":-0.0}',
    '{"content":[],"unknown":{"_meta":{"x/y":[null,true]}},"_meta":{"vendor/key":1}}',
    '{ "spaced" : [ 1 , 2 ] , "id" : 99 , "jsonrpc" : "1.0" }',
    '{"escaped":"\\u2028\\u0000\\ud83d\\ude00\\/"}',
]
EDGES = [65_535, 65_536, 65_537, 1 << 20, 8 << 20]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bridge():
    async with Bridge([echo("files"), hostile("lsp", timeouts={"start": "2s"})]) as running:
        yield running


@pytest.fixture(params=["session", "modern"])
def make(request, bridge):
    return getattr(bridge, request.param)


@pytest.mark.requirement("A19")
@pytest.mark.parametrize("value", TEXTS.values(), ids=TEXTS)
async def test_text_of_any_kind_comes_back_as_it_went(make, value):
    async with make("files") as client:
        assert await client.text("echo", text=value) == value


@pytest.mark.requirement("A19")
@pytest.mark.parametrize("value", TEXTS.values(), ids=TEXTS)
async def test_a_server_that_writes_byte_by_byte_is_read_right(make, value):
    async with make("files") as client:
        assert await client.text("bytewise", text=value) == value


@pytest.mark.parametrize("result", RESULTS)
async def test_a_result_reaches_the_client_of_a_session_as_written(bridge, result):
    async with bridge.session("files") as session:
        response = await session.send(session.call_of("raw", {"result": result}, 1))
        assert result.encode() in response.body


@pytest.mark.requirement("D4")
async def test_parameters_reach_the_server_with_unknown_fields_and_meta(bridge):
    params = {
        "name": "mirror",
        "arguments": {"deep": [{"x": None}], "big": 2**53 + 1},
        "vendor/field": {"a": 1},
        "_meta": {"traceparent": "00-abc-def-01", "vendor/key": [1], "progressToken": "p"},
    }
    async with bridge.session("files") as session:
        seen = json.loads(text_of(await session.request("tools/call", params)))
        seen["_meta"].pop("progressToken")
        params["_meta"].pop("progressToken")
        assert seen == params


@pytest.mark.parametrize("size", EDGES)
async def test_answers_of_any_size_below_the_cap_pass(make, size):
    async with make("files") as client:
        text = await client.text("echo", size=size)
        assert len(text) == size
        assert set(text) == {"x"}


async def test_an_argument_of_two_mebibytes_passes(make):
    async with make("files") as client:
        value = "ä" * (1 << 20)
        assert await client.text("echo", text=value) == value


@pytest.mark.requirement("H5")
async def test_an_answer_above_the_cap_fails_that_call_alone(make):
    async with make("files") as client:
        assert code_of(await client.call("echo", {"size": 20 << 20})) == "answer_too_large"
        assert await client.text("echo", text="next") == "next"


async def test_an_answer_of_twenty_mebibytes_passes_where_the_cap_allows_it():
    async with Bridge([hostile("big", caps={"line": "32M"})]) as bridge:
        async with bridge.session("big") as session:
            assert len(await session.text("echo")) == 20 << 20


@pytest.mark.requirement("H2")
async def test_noise_on_stdout_is_skipped_and_counted(bridge):
    async with bridge.session("files") as session:
        before = await bridge.metric("mcp_bridge_dropped_lines_total", server="files")
        pid = await session.text("pid")
        assert await session.text("noise") == "after noise"
        assert await session.text("pid") == pid
        after = await bridge.metric("mcp_bridge_dropped_lines_total", server="files")
        assert after > before


async def test_lines_that_end_in_cr_lf_are_read(make):
    async with make("files") as client:
        assert await client.text("crlf") == "after CRLF"


async def test_a_line_of_invalid_utf8_is_dropped_and_the_next_is_read(make):
    async with make("files") as client:
        assert await client.text("bad_utf8") == "after bad bytes"


@pytest.mark.parametrize("tool", ["bad_utf8", "bad_answer"])
async def test_an_answer_that_is_no_json_is_an_error_of_that_call(tool):
    async with Bridge([echo("files", timeouts={"call": "1s"})]) as bridge:
        async with bridge.session("files") as session:
            response = await session.send(session.call_of(tool, {"own": True}, 1))
            response.body.decode("utf-8")
            assert code_of(answer_to(response, 1)) in {"bad_answer", "call_timeout"}
            assert await session.text("echo", text="next") == "next"


async def test_a_client_body_of_invalid_utf8_is_refused(make):
    async with make("files") as client:
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\xff"}}'
        response = await client.send(body=body)
        assert response.status == 400
        assert response.messages[0]["error"]["code"] == -32700
        assert await client.text("echo", text="next") == "next"


async def test_content_length_framing_is_named_in_the_error(bridge):
    async with bridge.session("lsp", opened=False) as session:
        answer = answer_to(await session.send(session.initialize_of(1)), 1)
        assert "Content-Length" in json.dumps(error_of(answer))


@pytest.mark.requirement("H3")
@pytest.mark.parametrize("lines", [True, False])
async def test_a_flood_on_stderr_does_not_hold_up_the_answer(make, lines):
    async with make("files") as client:
        answer = await client.text("stderr", size=1 << 20, lines=lines)
        assert answer == "after stderr"


@pytest.mark.requirement("D5")
async def test_a_slow_call_delays_no_other(make):
    async with make("files") as client, make("files") as other:
        first = client.send(client.call_of("wait", {"tag": "slow"}, 1))

        waiting = asyncio.create_task(first)
        await eventually(lambda: waits(other, "slow"))
        assert await client.text("echo", text="same client") == "same client"
        assert await other.text("echo", text="other client") == "other client"
        assert not waiting.done()
        await other.text("release", tag="slow")
        assert text_of(answer_to(await waiting, 1)) == "slow"


async def waits(client, tag):
    return tag in json.loads(await client.text("state"))["waiting"]


async def test_a_large_tool_list_passes(bridge):
    names = ",".join(f"tool-{n:05}" for n in range(2000))
    async with Bridge([echo("many", "--tools", names)]) as running:
        async with running.session("many") as session:
            assert len(await session.tools()) > 2000
