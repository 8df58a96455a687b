"""Rules that hold for every input."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.config import splice
from autobot_mcp_bridge.config.merge import holds, merge
from autobot_mcp_bridge.config.problem import HIDDEN, SHOWN_CHARACTERS, json_path, show_value
from autobot_mcp_bridge.config.text import MAX_DEPTH, parse_json

# The whole of Unicode takes hypothesis half a minute to tabulate on a busy machine.
CHARACTERS = st.characters(max_codepoint=0x24F) | st.sampled_from("\u2028\u200b\u202e\ufeff€😀")
KEYS = st.text(CHARACTERS, max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | KEYS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
TABLES = st.dictionaries(KEYS, VALUES, max_size=4)
LOCS = st.lists(KEYS | st.integers(0, 10**6), max_size=6)
_STEP = re.compile(r'\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')


def read_path(path):
    """The inverse of json_path."""
    assert path.startswith("$")
    position, loc = 1, []
    while position < len(path):
        match = _STEP.match(path, position)
        assert match, path[position:]
        name, index, quoted = match.groups()
        loc.append(name if name is not None else int(index) if index else json.loads(quoted))
        position = match.end()
    return loc


@given(LOCS)
def test_a_json_path_names_exactly_one_place(loc):
    assert read_path(json_path(loc)) == loc


@given(LOCS)
def test_a_json_path_holds_nothing_that_a_terminal_acts_on(loc):
    assert json_path(loc).isascii()
    assert json_path(loc).isprintable()


@given(VALUES, LOCS)
def test_a_shown_value_is_short_and_printable_and_empty_below_a_hidden_key(value, loc):
    shown = show_value(value, loc)

    assert len(shown) <= SHOWN_CHARACTERS
    assert shown.isprintable()
    assert not shown or HIDDEN.isdisjoint(loc)
    for key in HIDDEN:
        assert show_value(value, (*loc, key, *loc)) == ""


@given(TABLES, TABLES)
def test_merging_keeps_everything_above_and_the_rest_of_what_is_below(below, above):
    merged = merge(below, above)

    assert merged.keys() == below.keys() | above.keys()
    for key, value in above.items():
        if not isinstance(value, dict) or not isinstance(below.get(key), dict):
            assert merged[key] == value
        else:
            assert merged[key] == merge(below[key], value)
    for key in below.keys() - above.keys():
        assert merged[key] == below[key]


@given(TABLES)
def test_merging_with_nothing_changes_nothing(table):
    assert merge({}, table) == table
    assert merge(table, {}) == table
    assert merge(table, table) == table


@given(TABLES, TABLES)
def test_every_place_of_a_merged_table_stands_above_or_below(below, above):
    def places(value, loc=()):
        yield loc
        if isinstance(value, dict):
            for key, member in value.items():
                yield from places(member, (*loc, key))

    for loc in places(merge(below, above)):
        assert holds(above, loc) or holds(below, loc)


@given(VALUES)
def test_plain_json_is_read_as_it_is(value):
    found, problems = parse_json(json.dumps(value).encode(), "file")

    assert (found, problems) == (value, [])


@given(st.binary(max_size=200) | st.text(CHARACTERS, max_size=200).map(str.encode))
def test_no_bytes_make_the_reader_raise(data):
    value, problems = parse_json(data, "file")

    assert value is None or not problems


@given(st.integers(MAX_DEPTH + 1, 2000))
def test_deep_nesting_is_one_problem(depth):
    _, problems = parse_json(b"[" * depth + b"]" * depth, "file")

    assert len(problems) == 1


ENTRIES = st.lists(
    st.dictionaries(KEYS, VALUES, max_size=3).map(lambda more: {**more, "name": "a"}),
    min_size=1,
    max_size=4,
)
INDENTS = st.sampled_from([None, 0, 1, 4, "\t"])


@given(ENTRIES, TABLES, INDENTS, st.data())
def test_splicing_changes_one_server_and_nothing_else(servers, more, indent, data):
    document = {**more, "servers": servers, "z": 1}
    text = json.dumps(document, indent=indent, ensure_ascii=data.draw(st.booleans()))
    index = data.draw(st.integers(0, len(servers) - 1))

    removed = json.loads(splice.without_server(text, index))
    changed = json.loads(splice.with_key(text, index, "enabled", value=False))

    assert removed == {**document, "servers": servers[:index] + servers[index + 1 :]}
    expected = [*servers]
    expected[index] = {**servers[index], "enabled": False}
    assert changed == {**document, "servers": expected}
    assert list(changed) == list(document)


@given(
    servers=st.lists(TABLES, max_size=4),
    rest=TABLES,
    new=st.lists(TABLES, min_size=1, max_size=3),
    data=st.data(),
    indent=st.sampled_from([None, 0, 2, 4]),
)
def test_servers_join_a_file_or_take_another_s_place_and_the_rest_keeps_its_text(
    servers, rest, new, data, indent
):
    document = {**rest, "servers": servers}
    text = json.dumps(document, indent=indent)

    joined = splice.with_servers(text, new)

    assert json.loads(joined) == {**document, "servers": [*servers, *new]}
    spans = splice.server_spans(text)
    kept = spans[-1].end if spans else text.rindex("[")
    assert joined.startswith(text[:kept])
    assert joined.endswith(text[text.rindex("]") + 1 :])
    if servers:
        index = data.draw(st.integers(0, len(servers) - 1))
        replaced = splice.with_server(text, index, new[0])
        assert json.loads(replaced)["servers"][index] == new[0]
        assert replaced.startswith(text[: spans[index].start])
        assert replaced.endswith(text[spans[index].end :])
