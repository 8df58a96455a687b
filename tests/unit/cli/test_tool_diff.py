"""What a person reads of two descriptors of a tool."""

import json

from autobot_mcp_bridge.cli import tool_diff
from autobot_mcp_bridge.cli.tool_diff import TOO_LARGE, difference


def seen(descriptor):
    return {"digest": "0", "package": None, "at": 1, "descriptor": descriptor}


def lines(old, new):
    accepted = seen(json.dumps(old)) if old is not None else None
    return list(difference(accepted, seen(json.dumps(new))))


def test_a_changed_leaf_is_two_lines_with_its_neighbours():
    old = {"a": 1, "b": {"c": "x", "d": [1, 2]}, "e": True, "f": None}

    assert lines(old, {**old, "b": {"c": "y", "d": [1, 2]}}) == [
        "  a: 1",
        '- b.c: "x"',
        '+ b.c: "y"',
        "  b.d[0]: 1",
    ]


def test_texts_of_several_lines_differ_by_their_lines():
    old = {"description": "one\ntwo\nthree"}

    assert lines(old, {"description": "one\n2\nthree"}) == [
        "      one",
        "-     two",
        "+     2",
        "      three",
    ]


def test_a_new_tool_is_shown_whole():
    assert lines(None, {"name": "a", "x": {}, "y": []}) == ['+ name: "a"', "+ x: {}", "+ y: []"]


def test_a_value_of_another_type_differs():
    assert lines({"a": "1"}, {"a": 1}) == ['- a: "1"', "+ a: 1"]


def test_what_was_too_large_to_be_kept_is_said_so():
    for accepted, now in (("{}", None), (None, "{}")):
        assert list(difference(seen(accepted), seen(now))) == [TOO_LARGE]


def test_a_long_difference_is_cut(monkeypatch):
    monkeypatch.setattr(tool_diff, "MOST_LINES", 3)

    found = lines(None, {str(number): number for number in range(9)})

    assert len(found) == 4
    assert found[-1].endswith("more lines; --json has all")
