import json
import re
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from autobot_mcp_bridge.config.errors import DataError, MissingError
from autobot_mcp_bridge.config.tokens import TokenStore, digest_of
from autobot_mcp_bridge.model.errors import UsageError


@pytest.fixture
def store(tmp_path):
    return TokenStore(tmp_path / "tokens.d")


def test_a_token_is_random_and_only_its_sha256_is_stored(store, tmp_path):
    token, record = store.new("files", "laptop")

    assert re.fullmatch(r"mcpb_[A-Za-z0-9_-]{43}", token)
    assert re.fullmatch(r"[0-9a-f]{8}", record.id)
    assert record.sha256 == digest_of(token)
    assert store.new("files")[0] != token
    text = (tmp_path / "tokens.d" / "files.json").read_text(encoding="utf-8")
    assert token not in text
    assert record.sha256 in text


def test_the_files_are_for_their_owner_only(store, tmp_path):
    store.new("files")

    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "tokens.d").iterdir()]
    assert modes == [0o600]
    assert stat.S_IMODE((tmp_path / "tokens.d").stat().st_mode) == 0o700


def test_an_expired_token_does_not_count(store):
    now = time.time()
    _, record = store.new("files", expires=now + 100)

    assert record.counts(now + 99)
    assert not record.counts(now + 100)


def test_rotation_lets_older_tokens_count_for_the_overlap_at_most(store):
    before = time.time()
    store.new("files")
    _, soon = store.new("files", expires=before + 5)

    store.rotate("files", overlap=50)

    first, second, third = store.list("files")
    assert before + 50 <= first.expires <= time.time() + 50
    assert second.expires == soon.expires
    assert third.expires is None


def test_rotation_without_overlap_ends_older_tokens_at_once(store):
    store.new("files")

    store.rotate("files", overlap=0)

    assert [record.counts(time.time()) for record in store.list("files")] == [False, True]


def test_revoking_one_token_leaves_the_others(store):
    _, first = store.new("files")
    _, second = store.new("files")

    assert store.revoke("files", first.id) == [first]
    assert store.list("files") == [second]
    with pytest.raises(MissingError, match=first.id):
        store.revoke("files", first.id)


def test_names_are_matched_whole(store):
    for instance in ("git", "git-admin", "acme.git"):
        store.new(instance)

    store.revoke("git")

    assert sorted(store.digests()) == ["acme.git", "git-admin"]


@pytest.mark.parametrize("name", ["../x", "a/b", "", "*", "A", "a.b.c.d", "git\n"])
def test_a_name_that_is_no_instance_reaches_no_file(store, name):
    with pytest.raises(UsageError):
        store.new(name)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"version": 2, "tokens": []}',
        '{"version": 1, "tokens": [{"id": "a"}]}',
        json.dumps({"version": 1, "tokens": [{"id": "a", "sha256": "x", "created": 1,
                                              "expires": None, "label": ""}]}),
        json.dumps({"version": 1, "tokens": [{"id": "a", "sha256": "0" * 64, "created": 1,
                                              "expires": "never", "label": ""}]}),
    ],
)  # fmt: skip
def test_a_broken_file_shuts_out_its_own_server_only_and_is_told(store, tmp_path, text):
    store.new("good")
    (tmp_path / "tokens.d" / "bad.json").write_text(text, encoding="utf-8")
    (tmp_path / "tokens.d" / "bad.json").chmod(0o600)

    scan = store.scan()

    assert list(scan.records) == ["good"]
    assert [problem.file for problem in scan.problems] == [str(tmp_path / "tokens.d" / "bad.json")]
    with pytest.raises(DataError):
        store.new("bad")
    store.revoke("bad")
    assert store.scan().problems == ()


def test_a_file_under_a_second_name_of_a_server_is_not_believed(store, tmp_path):
    store.new("files")
    (tmp_path / "tokens.d" / "files.json").rename(tmp_path / "tokens.d" / "default.files.json")

    scan = store.scan()

    assert scan.records == {}
    assert len(scan.problems) == 1


def test_concurrent_editors_lose_no_token(store):
    with ThreadPoolExecutor(4) as pool:
        tokens = list(pool.map(lambda _: store.new("files")[0], range(8)))

    assert {r.sha256 for r in store.list("files")} == {digest_of(token) for token in tokens}


def test_the_number_of_tokens_is_bounded(store, monkeypatch):
    monkeypatch.setattr("autobot_mcp_bridge.config.tokens.MAX_TOKENS", 2)
    store.new("files")
    store.new("files")

    with pytest.raises(UsageError, match="revoke"):
        store.new("files")
