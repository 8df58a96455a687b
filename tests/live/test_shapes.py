"""A server whose answers are JSON of absurd shapes harms nobody, and its caller hears something."""

import json

import pytest

from support.bridge import Bridge
from support.client import code_of, error_of
from support.fakes import entry

# What no table can be asked for, since it cannot be hashed.
SHAPES = ([], {})


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
