"""Documents as clients and as enemies write them: values, or one clear error."""

import json
import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.config.errors import DataError, UnavailableError
from autobot_mcp_bridge.connect.imported import document
from autobot_mcp_bridge.connect.imported.document import parse
from autobot_mcp_bridge.connect.imported.jsonc import plain_json

CHARACTERS = st.characters(max_codepoint=0x24F) | st.sampled_from("\u2028\ufeff€😀/*,\"'\\")
TEXTS = st.text(CHARACTERS, max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_json_without_comments_stays_as_it_is(value):
    for text in (json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)):
        assert plain_json(text) == text


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3), TEXTS)
def test_comments_and_a_last_comma_change_no_value(value, comment):
    line = comment.replace("\n", " ").replace("\r", " ")
    block = comment.replace("*/", "")
    text = json.dumps(value, indent=1)
    written = f"// {line}\n{text[:-1].rstrip()}, /* {block} */\n}} // {line}"

    assert json.loads(plain_json(written)) == value
    assert len(plain_json(written)) == len(written)


@pytest.mark.parametrize(
    "text", ['{"a": "// no", "b": "/* no */", "c": ",]"}', '{"a": "\\"//"}', "[1, 2]"]
)
def test_what_only_looks_like_a_comment_stays(text):
    assert json.loads(plain_json(text)) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('\ufeff{"a": 1}', {"a": 1}),
        ('// c\n{"a": 1,}', {"a": 1}),
        ("# c\n[mcp_servers.x]\ncommand = 'npx'\n", {"mcp_servers": {"x": {"command": "npx"}}}),
        ('a = 1\n[b]\nc = "d: e"\n', {"a": 1, "b": {"c": "d: e"}}),
        ("a:\n  - b: c = d\n", {"a": [{"b": "c = d"}]}),
        ("---\na: {b: [1, yes]}\n", {"a": {"b": [1, True]}}),
    ],
)
def test_the_text_says_what_it_is(text, value):
    assert parse(text.encode(), "f") == value


HOSTILE = {
    "nothing": (b"", "it is empty"),
    "blanks": (b" \n\t", "it is empty"),
    "a word": (b"foo", "allowed is an object"),
    "a list": (b"- 1\n", "allowed is an object"),
    "no UTF-8": (b"\xff{}", "allowed is UTF-8"),
    "half of JSON": (b'{"a": ', "not JSON"),
    "deep JSON": (b'{"a":' * 100_000, "levels of nesting"),
    "deep lists": (b'{"a":' + b"[" * 40 + b"]" * 40 + b"}", "levels of nesting"),
    "deep YAML": (b"a: " + b"[" * 5000, "levels of nesting"),
    "a key twice in JSON": (b'{"a": 1, "a": 2}', "stands twice"),
    "a key twice in YAML": (b"a: 1\na: 2\n", "stands twice"),
    "a key twice in TOML": (b"a = 1\na = 2\n", "not TOML"),
    "an alias": (b"a: &x [1]\nb: [*x, *x]\n", "an alias is not read"),
    "a tag": (b"a: !!python/object/apply:os.system [id]\n", "constructor"),
    "a key that is a list": (b"? [a]\n: 1\n", "allowed are texts as keys"),
    "a key that is a number": (b"1: a\n", "allowed are texts as keys"),
    "a date that is none": (b"a: 9999-99-99\n", "not YAML"),
    "a number that is none": (b'{"a": NaN}', "not JSON"),
    "a number of thousands of digits": (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
    "half of a surrogate": (b'{"a": "\\ud800"}', "surrogate"),
    "half of a surrogate in YAML": (b'a: "\\ud800"\n', "surrogate"),
    "too much": (b'{"a": "' + b"x" * document.MOST_BYTES + b'"}', "at most 8 MiB"),
    "too much YAML": (b"a: " + b"x" * (document.MOST_YAML + 1), "at most 1 MiB of YAML"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_read_is_one_clear_error(name):
    data, told = HOSTILE[name]

    with pytest.raises(DataError) as caught:
        parse(data, "the-file")

    said = str(caught.value)
    assert told in said
    assert said.startswith("the-file: ") and len(said) < 200 and "\n" not in said


def outcome(data):
    try:
        return parse(data, "f")
    except DataError as error:
        return str(error)


@given(st.binary(max_size=200) | TEXTS.map(str.encode))
def test_any_bytes_are_values_or_one_line(data):
    found = outcome(data)

    assert isinstance(found, dict) or (found.startswith("f: ") and "\n" not in found)


@pytest.mark.parametrize(
    "text", ["a: *sk-12345\n", "a: &sk-12345 1\nb: &sk-12345 2\n", "a: !sk-12345 x\n"]
)
def test_an_error_does_not_show_what_stands_there(text):
    assert "sk-12345" not in str(outcome(text.encode()))


def test_yaml_is_refused_in_words_where_nothing_reads_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)

    with pytest.raises(UnavailableError, match=r"PyYAML.*\[import\]"):
        parse(b"a:\n  - b\n", "f")
    assert parse(b"a = 1\n", "f") == tomllib.loads("a = 1\n")
