"""What stands in a line of a call's arguments (SM-81, SM-82)."""

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.model.known_values import KnownValues, secret_variables
from autobot_mcp_bridge.model.redact import REDACTED
from autobot_mcp_bridge.model.secret_keys import is_secret_key
from autobot_mcp_bridge.policy.audit.redaction import (
    LONGEST,
    MAX_DEPTH,
    MAX_TEXT,
    MAX_VALUES,
    ArgumentRedactor,
)

SENTINEL = "S3ntinel-of-the-tests"
plain = ArgumentRedactor(KnownValues())
KEYS = [
    *("GITHUB_TOKEN", "db_password", "CLIENT_SECRET", "api_KEY", "aws_credentials"),
    *("db_pwd", "user_pass", "basic_auth"),
    *("authorization", "Cookie", "session", "bearer", "password", "passwd", "token", "secret"),
    *("api_key", "apikey", "access_token", "refresh_token", "lease_id", "accessor"),
    *("secret_id", "role_id", "apiKey", "accessToken", "X-Api-Key", "client-secret"),
]


@pytest.mark.requirement("SM-81")
@pytest.mark.parametrize("key", KEYS)
def test_what_such_a_key_names_is_never_shown(key):
    for value in (SENTINEL, {"inner": SENTINEL}, [SENTINEL], 123456):
        assert plain({key: value, "path": "notes.md"}) == {key: REDACTED, "path": "notes.md"}


@pytest.mark.requirement("SM-81")
@pytest.mark.parametrize(
    "key",
    ["path", "keyboard", "tokens", "author", "compass", "secretary", "key", "monkey", "", "…"],
)
def test_what_another_key_names_is_shown(key):
    assert not is_secret_key(key)
    assert plain({key: "notes.md"}) == {key: "notes.md"}


@pytest.mark.requirement("SM-81")
def test_a_long_text_is_cut_with_the_number_of_its_bytes():
    text = "wörter und mehr, " * 100
    shown = plain({"text": text})["text"]

    assert shown.startswith("wörter und mehr, ")
    assert len(shown) < LONGEST + 40
    assert shown.endswith(f"…[{len(text.encode())} bytes]")
    assert plain("x " * (LONGEST // 2)) == "x " * (LONGEST // 2)


@pytest.mark.requirement("SM-81")
def test_bytes_are_shown_by_their_size():
    assert plain({"data": b"12345"}) == {"data": "[5 bytes]"}


PATTERNS = {
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "bearer": "Bearer abcdef.ghijkl",
    "github": "ghp_0123456789abcdefABCDEF",
    "github fine": "github_pat_11ABCDEFG0123456789",
    "vault": "hvs.CAESIJ0123456789",
    "vault batch": "hvb.AAAAAQ0123456789",
    "vault old": "s.0123456789abcdefghijABCD",
    "hex": "deadbeef" * 4,
    "hex digits": "0123456789" * 4,
    "hex letters": "abcdef" * 6,
    "ours": "mcpb_0123456789abcdef",
    "assigned": "password=opensesame",
    "private key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nabc+/=\n-----END PRIVATE KEY-----",
}


@pytest.mark.requirement("SM-82")
@pytest.mark.parametrize("kind", PATTERNS)
@pytest.mark.parametrize("around", ["{}", "see {} there", "«{}»", "a\n{}\nb", "x" * 600 + " {}"])
def test_such_a_text_is_never_shown_wherever_it_stands(kind, around):
    secret = PATTERNS[kind]
    text = around.format(secret)
    bare = secret.removeprefix("password=").removeprefix("Bearer ")

    for value in ({"q": text}, [[text]], {text: 1}, {"a": {"b": [text]}}):
        written = json.dumps(plain(value), ensure_ascii=False)
        assert all(word not in written for word in bare.split("\n") if "KEY" not in word)


@pytest.mark.requirement("SM-82")
@pytest.mark.parametrize(
    "text",
    [
        "7d0c5a62-9b0e-4f6d-8a10-5c1b9f0e2f6d",  # which document was meant
        "quarterly-report-2026-final-version-3.pdf",
        "/srv/acme/projects/website-relaunch-2026/index.html",
        "deadbeef" * 3,
        "the keys are on the table",
    ],
)
def test_what_a_call_was_about_is_shown(text):
    assert plain(text) == text


ENV = {
    "GITHUB_TOKEN": 'line "one"\\two-and-more',
    "DATABASE": "postgres://user:opensesame@db.example/main",
    "LOG_LEVEL": "debug-very-much",
    "PIN_KEY": "123456789012",
    "ORIGIN": "https://db.example",
}


@pytest.mark.requirement("SM-82")
def test_variables_that_hold_a_secret_are_known_by_name_or_url():
    assert set(secret_variables(ENV)) == {"GITHUB_TOKEN", "DATABASE"}


@pytest.mark.requirement("SM-82")
@pytest.mark.parametrize("form", [str, repr, json.dumps], ids=["raw", "repr", "json"])
@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "DATABASE"])
def test_a_known_value_is_replaced_by_its_name_in_each_form(form, name):
    known = ArgumentRedactor(KnownValues(secret_variables(ENV)))
    shown = known({"q": f"it is {form(ENV[name])} there"})["q"]

    assert f"<redacted-value:{name}>" in shown
    assert ENV[name][5:20] not in shown
    assert known("debug-very-much") == "debug-very-much"


SECRETS = st.sampled_from([ENV["DATABASE"], *PATTERNS.values()])
FILL = st.text(alphabet=st.sampled_from(" ab,.\n\"'{}-é\\"), max_size=700)


@pytest.mark.requirement("SM-82")
@given(before=FILL, after=FILL, pad=st.integers(0, 540))
def test_no_part_of_a_known_value_survives_a_cut(before, after, pad):
    known = ArgumentRedactor(KnownValues(secret_variables(ENV)))
    secret = ENV["DATABASE"]
    shown = known(before + " " * pad + secret + after)

    assert "opensesame" not in shown and "postgres://u" not in shown


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | FILL,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FILL, inner, max_size=4),
    max_leaves=20,
)
PLACES = st.lists(st.sampled_from(["list", "value", "key", "secret key"]), max_size=MAX_DEPTH + 3)


@given(secret=SECRETS, around=JSON, places=PLACES, before=FILL)
def test_a_secret_never_survives_wherever_it_is(secret, around, places, before):
    """Whatever stands around it, in keys and values, at any depth."""
    known = ArgumentRedactor(KnownValues(secret_variables(ENV)))
    value = f"{before} {secret} "
    for place in places:
        match place:
            case "list":
                value = [around, value]
            case "value":
                value = {"x": value, "y": around}
            case "key":
                value = {before + " " + secret: value}
            case _:
                value = {"api_key": value}
    written = orjson.dumps(known(value)).decode()

    bare = secret.removeprefix("password=").removeprefix("Bearer ")
    assert all(word not in written for word in bare.split("\n") if "KEY" not in word)
    assert "opensesame" not in written


@given(value=JSON)
def test_whatever_is_json_stays_json_and_small(value):
    written = orjson.dumps(plain(value), option=orjson.OPT_NON_STR_KEYS)

    assert len(written) < 100_000


def test_many_values_and_much_text_are_bounded_and_counted():
    many = plain({"n": list(range(MAX_VALUES * 10))})["n"]
    assert len(many) <= MAX_VALUES + 1
    assert many[-1].endswith("more elements]")
    much = orjson.dumps(plain({f"k{n}": "word " * 90 for n in range(5000)}))
    assert len(much) < 4 * MAX_TEXT
    deep = value = {}
    for _ in range(100):
        value["d"] = {}
        value = value["d"]
    assert "members]" in orjson.dumps(plain(deep)).decode()


def test_a_number_that_no_double_holds_is_kept():
    number = orjson.Fragment(b"123456789012345678901234")

    assert orjson.dumps(plain({"n": number})) == b'{"n":123456789012345678901234}'
