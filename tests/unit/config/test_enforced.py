"""The facts that root has found out of this host, in a file that everybody may read."""

import json

import pytest

from autobot_mcp_bridge.config import enforced
from autobot_mcp_bridge.model.promises import Kept, Promise

FACTS = {promise: Kept(promise is not Promise.CPU, "") for promise in Promise}


def test_facts_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "enforced.json"
    enforced.write(path, FACTS)

    assert enforced.read(path) == FACTS
    assert path.stat().st_mode & 0o777 == 0o644


def test_the_same_facts_are_not_written_again(tmp_path):
    path = tmp_path / "enforced.json"
    enforced.write(path, FACTS)
    inode = path.stat().st_ino
    enforced.write(path, FACTS)

    assert path.stat().st_ino == inode


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "{}", '{"format": 2, "promises": {}}', '{"format": 1, "promises": {}}']
)
def test_a_file_of_another_kind_or_version_says_nothing(tmp_path, text):
    path = tmp_path / "enforced.json"
    assert enforced.read(path) == {}
    path.write_text(text, encoding="utf-8")

    assert enforced.read(path) == {}


def test_a_promise_that_was_not_tried_is_a_mistake():
    whole = {promise: {"kept": True, "why": ""} for promise in Promise}

    assert len(enforced.parse(json.dumps(whole).encode())) == len(Promise)
    with pytest.raises(ValueError, match="not what the probe prints"):
        enforced.parse(json.dumps({**whole, Promise.CPU: None}).encode())
