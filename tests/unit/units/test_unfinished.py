"""What apply remembers of a run that was cut off."""

import pytest

from autobot_mcp_bridge.units import unfinished
from autobot_mcp_bridge.units.unfinished import Unfinished


def test_what_is_begun_is_left_until_it_is_ended(tmp_path):
    begun = Unfinished(frozenset({"a"}), frozenset({"b", "c"}), frozenset({"x.socket"}), proxy=True)
    assert unfinished.left(tmp_path) is None

    unfinished.begin(tmp_path, begun)
    assert unfinished.left(tmp_path) == begun

    unfinished.end(tmp_path)
    assert unfinished.left(tmp_path) is None


def test_a_second_run_that_is_cut_off_adds_to_the_first():
    first, second = Unfinished(added=frozenset({"a"})), Unfinished(changed=frozenset({"b"}))

    assert first | second == Unfinished(frozenset({"a"}), frozenset({"b"}))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"added": 3}', "\x00"])
def test_a_note_that_cannot_be_read_still_tells_that_something_was_begun(tmp_path, text):
    (tmp_path / unfinished.FILE).write_text(text, encoding="utf-8")

    assert unfinished.left(tmp_path) == Unfinished()
