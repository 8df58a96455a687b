"""The files of API keys."""

import json
import re
import stat
import time

import pytest

from autobot_mcp_bridge.config.digests import digest_of
from autobot_mcp_bridge.config.errors import DataError, MissingError
from autobot_mcp_bridge.config.keys import KeyOrder, KeyStore, read_uses, write_uses
from autobot_mcp_bridge.model.agents import Role
from autobot_mcp_bridge.model.errors import UsageError

ORDER = KeyOrder("a1", "coder")


@pytest.fixture
def store(tmp_path):
    return KeyStore(tmp_path / "keys.d")


def test_a_key_is_random_and_only_its_sha256_is_stored(store, tmp_path):
    key, record = store.new("acme", ORDER)

    assert re.fullmatch(r"mcpk_[A-Za-z0-9_-]{43}", key)
    assert record.sha256 == digest_of(key)
    path = tmp_path / "keys.d" / "acme.json"
    text = path.read_text(encoding="utf-8")
    assert key not in text
    assert record.sha256 in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_key_is_read_as_it_was_made(store):
    order = KeyOrder(" a1 ", "coder_2", "web", (Role.TENANT_ADMIN, Role.TENANT_ADMIN), "l", 5e9)
    _, record = store.new("acme", order)

    assert store.list("acme") == [record]
    assert (record.agent_id, record.roles) == ("a1", (Role.TENANT_ADMIN,))
    assert store.scan().records == {"acme": (record,)}


@pytest.mark.requirement("SM-01")
def test_everything_that_is_wrong_is_told_at_once(store):
    with pytest.raises(UsageError) as caught:
        store.new("acme", KeyOrder("A", "x\ny", "-", ()))

    for word in ("project", "roles", "agent id", "agent type"):
        assert f"{word}: allowed is" in str(caught.value)
    assert store.list("acme") == []


@pytest.mark.parametrize("tenant", ["../x", "a/b", "", "*", "A", "a.b", "acme\n"])
def test_a_name_that_is_no_tenant_reaches_no_file(store, tenant):
    with pytest.raises(UsageError):
        store.new(tenant, ORDER)


def test_rotation_keeps_the_id_and_ends_the_older_secret_of_that_key_only(store):
    _, first = store.new("acme", ORDER)
    _, other = store.new("acme", ORDER)
    before = time.time()

    key, second = store.rotate("acme", first.id, overlap=50)

    assert (second.id, second.sha256) == (first.id, digest_of(key))
    records = {record.sha256: record.expires for record in store.list("acme")}
    assert before + 50 <= records[first.sha256] <= time.time() + 50
    assert records[second.sha256] is None
    assert records[other.sha256] is None
    with pytest.raises(MissingError, match="ffffffff"):
        store.rotate("acme", "ffffffff")


def test_a_rotated_key_still_expires_when_it_was_to(store):
    ends = time.time() + 1000
    _, record = store.new("acme", KeyOrder("a1", "coder", expires=ends))

    _, rotated = store.rotate("acme", record.id)

    assert rotated.expires == ends


def test_revoking_a_key_ends_all_its_secrets(store):
    _, first = store.new("acme", ORDER)
    _, other = store.new("acme", ORDER)
    store.rotate("acme", first.id)

    assert {record.id for record in store.revoke("acme", first.id)} == {first.id}
    assert store.list("acme") == [other]
    with pytest.raises(MissingError, match="key list"):
        store.revoke("acme", first.id)


def test_the_number_of_keys_is_bounded(store, monkeypatch):
    monkeypatch.setattr("autobot_mcp_bridge.config.keys.MAX_KEYS", 1)
    store.new("acme", ORDER)

    with pytest.raises(UsageError, match="revoke"):
        store.new("acme", ORDER)


GOOD = {
    "id": "00000001",
    "sha256": "0" * 64,
    "created": 1,
    "expires": None,
    "label": "",
    "project": None,
    "roles": ["member"],
    "agent_id": "a1",
    "agent_type": "coder",
}


@pytest.mark.parametrize(
    "change",
    [
        {"roles": []},
        {"roles": ["root"]},
        {"roles": "member"},
        {"roles": None},
        {"project": "a/b"},
        {"project": 1},
        {"agent_id": "A"},
        {"agent_id": None},
        {"agent_type": ""},
        {"sha256": "x"},
        {"expires": "never"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_broken_record_shuts_out_its_own_tenant_and_is_told(store, tmp_path, change):
    store.new("good", ORDER)
    path = tmp_path / "keys.d" / "bad.json"
    document = {"version": 1, "keys": [GOOD]}
    path.write_text(json.dumps(document), encoding="utf-8")
    path.chmod(0o600)
    assert set(store.scan().records) == {"good", "bad"}

    document["keys"] = [GOOD, {**GOOD, **change}]
    path.write_text(json.dumps(document), encoding="utf-8")
    scan = store.scan()

    assert set(scan.records) == {"good"}
    assert [problem.file for problem in scan.problems] == [str(path)]
    assert scan.broken == ("bad",)
    with pytest.raises(DataError):
        store.new("bad", ORDER)


def test_uses_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "used.d" / "keys.json"
    write_uses(path, {"acme": {"00000001": 5}})

    assert read_uses(path) == {"acme": {"00000001": 5}}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"acme": 1}', '{"acme": {"a": "x"}}'])
def test_a_broken_file_of_uses_is_none(tmp_path, text):
    path = tmp_path / "keys.json"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)

    assert not any(read_uses(path).values())
    assert read_uses(tmp_path / "missing") == {}
