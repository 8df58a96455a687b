"""Messages of absurd shapes and sizes harm nobody, and who sends or calls for them hears of it."""

import json

import pytest

from support import proc
from support.bridge import Bridge
from support.client import answer_to, code_of, error_of, text_of
from support.fakes import entry

# What no table can be asked for, since it cannot be hashed.
SHAPES = ([], {})
LARGE = 3_500_000


@pytest.mark.parametrize("code", SHAPES, ids=str)
async def test_an_error_whose_code_is_no_number_is_passed_on(code):
    async with Bridge([entry("modern", "files")]) as bridge:
        async with bridge.modern("files") as modern, bridge.session("files") as session:
            for client in (modern, session):
                answer = await client.call("fail", {"code": code, "message": "no"})
                assert error_of(answer) == {"code": code, "message": "no"}


@pytest.mark.parametrize("method", SHAPES, ids=str)
async def test_a_question_whose_method_is_no_text_fails_its_call(method):
    asked = {"resultType": "input_required", "inputRequests": {"a": {"method": method}}}
    async with Bridge([entry("modern", "files")]) as bridge, bridge.session("files") as session:
        answer = await session.call("raw", {"result": json.dumps(asked)})
        assert code_of(answer) == "bad_answer"
        assert await session.text("echo", text="x") == "x"


@pytest.mark.parametrize("name", ["modern", "session"])
async def test_an_id_and_a_progress_token_are_short(name):
    async with Bridge([entry("modern", "files")]) as bridge:
        async with getattr(bridge, name)("files") as client:
            fits = "i" * 1000
            message = client.call_of("echo", {"text": "x"}, fits, progress=fits)
            assert text_of(answer_to(await client.send(message), fits)) == "x"
            response = await client.send(client.call_of("echo", {"text": "x"}, "i" * 1024))
            assert (response.status, error_of(response.messages[0])["code"]) == (400, -32600)
            message = client.call_of("echo", {"text": "x"}, 1, progress="p" * 1025)
            assert code_of(answer_to(await client.send(message), 1)) == "bad_text"


async def test_what_was_asked_is_not_kept_while_it_is_answered():
    async with Bridge([entry("modern", "files")]) as bridge, bridge.modern("files") as client:
        for _ in range(4):
            await client.text("echo", text="x" * LARGE)
        before = proc.rss(bridge.pid)
        wish = {"notifications": {"toolsListChanged": True}, "pad": "x" * LARGE}
        messages = [client.request_of("subscriptions/listen", wish) for _ in range(20)]
        streams = [await client.open_stream(message) for message in messages]
        for stream in streams:
            await stream.event()
        assert proc.rss(bridge.pid) < before + 10 * LARGE
        for stream in streams:
            await stream.close()
