"""Answers are spliced, not rewritten: the promise of channels/jsonrpc.py."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.jsonrpc import Answer

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)
RESULT = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=5)
CLIENT_ID = st.integers(-(2**53), 2**63) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=40
)
ORDERS = [
    ("jsonrpc", "id", "result"),
    ("id", "jsonrpc", "result"),
    ("result", "jsonrpc", "id"),
    ("jsonrpc", "result", "id"),
    ("result", "id", "jsonrpc"),
    ("id", "result", "jsonrpc"),
]


def line_of(order, number, result, **options):
    whole = {"jsonrpc": "2.0", "id": number, "result": result}
    return json.dumps({key: whole[key] for key in order}, **options).encode()


@pytest.mark.parametrize("order", ORDERS)
@given(
    result=RESULT,
    number=st.integers(1, 10**12),
    client_id=CLIENT_ID,
    ascii_only=st.booleans(),
    spaced=st.booleans(),
)
def test_an_answer_keeps_everything_but_its_id(
    order, result, number, client_id, ascii_only, spaced
):
    separators = (", ", ": ") if spaced else (",", ":")
    line = line_of(order, number, result, ensure_ascii=ascii_only, separators=separators)

    answer = jsonrpc.parse(line)

    assert isinstance(answer, Answer)
    assert answer.number == number
    sent = json.loads(answer.encode(orjson.dumps(client_id)))
    assert sent == {"jsonrpc": "2.0", "id": client_id, "result": result}


@pytest.mark.parametrize("order", ORDERS)
@given(result=RESULT, number=st.integers(1, 10**12))
def test_members_are_put_into_the_result_wherever_it_stands(order, result, number):
    answer = jsonrpc.parse(line_of(order, number, result))

    sent = json.loads(answer.encode(b'"c"', b'"resultType":"complete","ttlMs":0,'))

    assert sent["result"] == {"resultType": "complete", "ttlMs": 0, **result}
    assert sent["id"] == "c"


@pytest.mark.parametrize("order", ORDERS)
def test_a_large_answer_is_not_parsed_in_the_usual_orders(order):
    result = {"content": [{"type": "text", "text": '\u2028ü\\"id":7}' * 20_000}]}

    answer = jsonrpc.parse(line_of(order, 41, result))

    assert isinstance(answer, Answer)
    assert answer.number == 41
    assert json.loads(answer.encode(b"0"))["result"] == result


def test_an_id_inside_a_string_is_never_taken_for_the_answers_own():
    trap = {"a": ',"id":5}', "b": '{"id":6,"result":{', "c": 'x\\","id":7}'}
    line = line_of(("result", "jsonrpc", "id"), 3, {"text": "y" * 70_000, **trap})

    assert jsonrpc.parse(line).number == 3


@pytest.mark.parametrize(
    "line",
    [b"Server started", b"[1,2]", b"123", b"null", b'"x"', b"{}", b'{"id":1}', b'{"id":"1","result":{}}',
     b'{"id":true,"result":{}}', b'{"id":1,"result":5}', b"{" * 5000, b"[" * 5000, b'{"method":"x","a":'],
)  # fmt: skip
def test_a_line_that_is_no_message_is_nothing(line):
    assert jsonrpc.parse(line) is None


@pytest.mark.parametrize(
    "inner", [b'"\xff"', b"[" * 300 + b"]" * 300, b'"' + b"x" * 70_000 + b'\xff"']
)
def test_an_answer_that_cannot_be_read_fails_its_call_at_once(inner):
    answer = jsonrpc.parse(b'{"jsonrpc":"2.0","id":7,"result":{"a":' + inner + b"}}")

    assert (answer.number, answer.is_error) == (7, True)
    assert "cannot be read" in json.loads(answer.encode(b"1"))["error"]["message"]


@pytest.mark.parametrize("depth", [254, 600, 985, 1020, 5000])
def test_no_depth_of_a_line_is_a_fault(depth):
    for inner in (b'"\\ud800"', b"1"):
        nested = b"[" * depth + inner + b"]" * depth
        for line in (b'{"method":"m","params":{"a":' + nested + b"}}", nested):
            jsonrpc.parse(line)


def test_many_small_containers_are_refused_before_they_are_made():
    with pytest.raises(ValueError, match="arrays and objects"):
        jsonrpc.loads(b"[" + b"[]," * 200_000 + b"1]")


@pytest.mark.parametrize("number", ["-9223372036854775809", "18446744073709551616"])
def test_integers_just_beyond_64_bits_keep_their_value(number):
    assert jsonrpc.dumps(jsonrpc.loads(f"[{number}]".encode())) == f"[{number}]".encode()


def test_a_doubled_id_is_read_once_and_written_once():
    answer = jsonrpc.parse(b'{"jsonrpc":"2.0","id":1,"result":{"x":1},"id":2}')

    assert json.loads(answer.encode(b"9")) == {"jsonrpc": "2.0", "id": 9, "result": {"x": 1}}
    assert answer.encode(b"9").count(b'"id"') == 1


@pytest.mark.parametrize(
    "number", ["123456789012345678901234567890", "-18446744073709551617", "1e400"]
)
def test_numbers_beyond_64_bits_go_through_unchanged(number):
    text = f'{{"n":{number}}}'.encode()

    assert jsonrpc.dumps(jsonrpc.loads(text)) == text


@pytest.mark.parametrize(
    "text", [b"NaN", b'{"a":Infinity}', b"\xff", b'{"a":12345678901234567890123,}', b"["]
)
def test_what_is_not_json_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the parser's
        jsonrpc.loads(text)
