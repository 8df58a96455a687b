"""The two files of the egress proxy: what servers may reach, and what it has counted."""

from collections import Counter

import pytest

from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.egress import allowed, counts
from autobot_mcp_bridge.egress.counts import Counts
from autobot_mcp_bridge.model.destinations import Destination


def test_what_apply_writes_is_what_is_read(tmp_path):
    path = tmp_path / "egress.json"

    assert allowed.write(path, {"b": ["*.example.org:8443"], "a": ["API.example.com"]})
    assert allowed.read(path) == {
        "a": (Destination("api.example.com", 443),),
        "b": (Destination("*.example.org", 8443),),
    }
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_same_is_not_written_twice(tmp_path):
    path = tmp_path / "egress.json"
    allowed.write(path, {"a": ["api.example.com"]})
    before = path.stat().st_ino

    assert not allowed.write(path, {"a": ["api.example.com:443"]})
    assert path.stat().st_ino == before


@pytest.mark.parametrize("text", [None, ""])
def test_without_a_file_nothing_is_allowed(tmp_path, text):
    path = tmp_path / "egress.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    assert allowed.read(path) == {}


BAD = (
    "x",
    "[]",
    '{"version": 2, "servers": {}}',
    '{"version": 1}',
    '{"version": 1, "servers": []}',
    '{"version": 1, "servers": {"a": ["*"]}}',
    '{"version": 1, "servers": {"a": 3}}',
    '{"version": 1, "servers": {"a": [3]}}',
    "[" * 100_000,
)


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_a_file_that_apply_has_not_written_is_refused_whole(tmp_path, text):
    path = tmp_path / "egress.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(DataError, match=r"egress\.json"):
        allowed.read(path)


def test_counts_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "counts.json"
    known = {"a": Counts(3, Counter(not_listed=2), 1), "b.c": Counts()}
    counts.write(path, counts.dumps(known))

    assert counts.load(path) == known


@pytest.mark.parametrize("text", [None, *BAD, '{"version": 1, "servers": {"a": {}}}'])
def test_without_counts_there_are_none(tmp_path, text):
    path = tmp_path / "counts.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    assert counts.load(path) == {}
