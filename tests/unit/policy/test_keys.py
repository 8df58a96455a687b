"""The table of API keys, and whose principal a key makes."""

import pytest

from autobot_mcp_bridge.config.keys import KeyRecord
from autobot_mcp_bridge.model.agents import Role, is_agent_id, is_agent_type
from autobot_mcp_bridge.model.names import ServerId
from autobot_mcp_bridge.policy import keys
from autobot_mcp_bridge.policy.keys import Holders, KeyTable
from autobot_mcp_bridge.policy.principals import Principal, key_of, principal_of


def record(sha256="a" * 64, key_id="00000001", expires=None, created=1.0, **more):
    values = {"project": None, "roles": (Role.MEMBER,), "agent_id": "a1", "agent_type": "t", **more}
    return KeyRecord(key_id, sha256, created, expires, "", **values)


@pytest.fixture
def now():
    return [100.0]


@pytest.fixture
def table(now):
    made = KeyTable(lambda: now[0])
    made.put({"acme": [record(expires=200.0)], "rival": [record("b" * 64)]})
    return made


def test_a_key_is_found_by_its_digest_until_it_expires(table, now):
    assert table.find("a" * 64).tenant == "acme"
    assert table.find("b" * 64).tenant == "rival"
    assert table.find("") is None
    now[0] = 200.0
    assert table.find("a" * 64) is None


def test_a_key_that_was_shown_counts_while_it_says_the_same(table):
    key = table.find("a" * 64)
    table.put({"acme": [record(expires=150.0)]})
    assert table.holds(key)  # a rotation has only brought its end nearer

    for change in (
        {"project": "web"},
        {"roles": (Role.TENANT_ADMIN,)},
        {"agent_id": "a2"},
        {"agent_type": "other"},
        {"key_id": "00000002"},
    ):
        table.put({"acme": [record(**change)]})
        assert not table.holds(key), change
    table.put({"rival": [record()]})
    assert not table.holds(key)
    table.put({})
    assert not table.holds(key)


def test_uses_are_kept_for_keys_that_there_are_and_counted(table):
    table.recall({"acme": {"00000001": 50}, "gone": {"00000001": 60}})
    assert table.changes == 0
    table.used(table.find("b" * 64))

    assert table.changes == 1
    assert table.uses() == {"acme": {"00000001": 50}, "rival": {"00000001": 100}}

    table.put({"acme": [record()]})
    table.used(table.find("a" * 64))
    assert table.uses() == {"acme": {"00000001": 100}}


def test_uses_outlive_a_broken_file_and_not_the_end_of_a_key(table):
    table.used(table.find("a" * 64))
    table.used(table.find("b" * 64))

    table.put({"rival": []}, broken=["acme"])
    assert table.find("a" * 64) is None
    table.recall({"acme": {"00000002": 7}})
    table.put({"acme": [record(), record("c" * 64, "00000002")]})

    assert table.uses() == {"acme": {"00000001": 100, "00000002": 7}}


def test_an_older_use_does_not_replace_a_newer_one(table):
    table.used(table.find("a" * 64))
    table.recall({"acme": {"00000001": 5}})
    assert table.uses() == {"acme": {"00000001": 100}}


def test_a_principal_is_the_key_in_its_project_whatever_its_secret(table):
    table.put({"acme": [record(), record("c" * 64, created=2.0)], "rival": [record("b" * 64)]})
    old, new, other = (table.find(letter * 64) for letter in "acb")

    mine = principal_of(old, "acme.files", None)
    assert principal_of(new, "acme.files", None).digest == mine.digest
    assert principal_of(old, "acme.files", "web").digest != mine.digest
    assert principal_of(other, "acme.files", None).digest != mine.digest
    assert mine.digest not in {old.sha256, new.sha256}


def test_what_was_shown_last_stands_for_the_session(table):
    table.put({"acme": [record(), record("c" * 64, created=2.0)]})
    old, new = (principal_of(table.find(letter * 64), "acme.files", None) for letter in "ac")
    assert new.outlasts(old)
    assert not old.outlasts(new)
    assert not old.outlasts(old)

    beside = principal_of(
        table.find("a" * 64), "acme.files", None, Principal("t" * 64, "acme.files")
    )
    assert beside.outlasts(old)
    assert old.outlasts(beside)


@pytest.mark.parametrize(("key", "token", "both"), [(None, None, None), (5.0, None, 5.0), (None, 7.0, 7.0), (5.0, 7.0, 5.0), (9.0, 7.0, 7.0)])  # fmt: skip
def test_a_token_beside_a_key_ends_the_principal_with_whichever_is_first(table, key, token, both):
    table.put({"acme": [record(expires=key)]})
    found = KeyTable(lambda: 0.0)
    found.put({"acme": [record(expires=key)]})
    beside = Principal("t" * 64, "acme.files", token)

    principal = principal_of(found.find("a" * 64), "acme.files", None, beside)

    assert (principal.expires, principal.token) == (both, "t" * 64)


def test_a_principal_is_made_once_and_anew_when_its_key_or_token_is_another(table, monkeypatch):
    holders, server = Holders(), ServerId("acme", None, "files")
    key, token = table.find("a" * 64), Principal("t" * 64, "acme.files", 150.0)
    first = holders.principal(key, server, None, None)
    assert holders.principal(key, server, None, None) is first
    assert holders.principal(key, server, "web", None).project == "web"
    assert holders.principal(key, server, None, token).expires == 150.0
    assert holders.principal(key, server, None, None) == first
    ended = Principal("t" * 64, "acme.files", 120.0)
    assert holders.principal(key, server, None, ended).expires == 120.0

    table.put({"acme": [record(expires=110.0)]})
    assert holders.principal(table.find("a" * 64), server, None, None).expires == 110.0

    monkeypatch.setattr(keys, "MAX_HOLDERS", 1)
    for project in ("web", "shop"):
        assert holders.principal(key, server, project, None).project == project


@pytest.mark.parametrize("value", ["", "  ", "x" * 9000])
def test_what_can_be_no_key_is_none(value):
    assert key_of(value) is None


def test_a_key_is_taken_without_the_blanks_around_it():
    assert key_of(" mcpk_x ") == "mcpk_x"


@pytest.mark.requirement("SM-01")
@pytest.mark.parametrize("text", ["a", "7", "a-b", "a" * 63, "build-agent-7"])
def test_an_agents_id_is_taken(text):
    assert is_agent_id(text)
    assert is_agent_type(text)


@pytest.mark.requirement("SM-01")
@pytest.mark.parametrize("text", ["", "-a", "_a", "A", "a\n", "a b", "ä", "a" * 64, "a.b", "a/b"])
def test_what_the_patterns_do_not_match_whole_is_refused(text):
    assert not is_agent_id(text)
    assert not is_agent_type(text)


@pytest.mark.requirement("SM-01")
def test_only_a_type_may_have_an_underscore():
    assert is_agent_type("a_b")
    assert not is_agent_id("a_b")
