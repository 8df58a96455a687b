"""Whatever ends the process, the next one finds the state of some moment, whole."""

import os

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.supervision import journal
from autobot_mcp_bridge.supervision.journal import Held, Journal, line_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.sampled_from(["", "a", "b c", "ü\n"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda some: st.lists(some, max_size=3) | st.dictionaries(TEXTS, some, max_size=3),
    max_leaves=5,
)
KEYS = st.tuples(st.sampled_from(["session", "channel"]), st.sampled_from(["x", "y.z"]), NAMES)
# A put, or a drop.
CHANGES = st.lists(st.tuples(KEYS, st.tuples(VALUES) | st.none()), max_size=30)


class Store:
    """What systemd would hold: duplicates by name."""

    def __init__(self):
        self.held = {}
        self.told = []

    def store(self, name, *descriptors):
        self.held[name] = [os.dup(descriptor) for descriptor in descriptors]
        self.told.append(name)

    def remove(self, name):
        for descriptor in self.held.pop(name, ()):
            os.close(descriptor)
        self.told.append(f"-{name}")

    def taken(self):
        """As the next process is given them: descriptors of its own, held here too."""
        return {name: [os.dup(d) for d in held] for name, held in self.held.items()}

    def text(self):
        ((descriptor,),) = self.held.values()
        return os.pread(descriptor, 1 << 20, 0)

    def close(self):
        for name in list(self.held):
            self.remove(name)


@pytest.fixture
def store():
    made = Store()
    yield made
    made.close()


def apply(target, change):
    key, value = change
    if value is None:
        target.drop(*key)
    else:
        target.put(*key, value[0])


def key_of(held):
    return sorted((orjson.loads(line) for line in held.lines()), key=repr)


@given(CHANGES, st.data())
def test_any_prefix_of_the_lines_is_the_state_after_some_of_the_changes(changes, data):
    lines = [line_of(*key, *(value or ())) for key, value in changes]
    text = b"".join(lines)
    cut = data.draw(st.integers(0, len(text)))

    whole = text[:cut].count(b"\n")
    model = Held()
    for change in changes[:whole]:
        apply(model, change)
    assert key_of(Held.of(text[:cut])) == key_of(model)


@given(CHANGES, st.integers(1, 400))
def test_the_next_process_finds_every_change_however_often_the_file_is_begun_anew(changes, limit):
    store, model = Store(), Held()
    before, journal.COMPACT_AT = journal.COMPACT_AT, limit
    try:
        first = Journal(store, {})
        for change in changes:
            apply(first, change)
            apply(model, change)
            assert len(store.held) == 1
        second = Journal(store, store.taken())
        for kind in ("session", "channel"):
            for instance in ("x", "y.z"):
                assert second.items(kind, instance) == model.items(kind, instance)
        assert (first.generation, second.generation) == (1, 2)
        first.close()
        second.close()
    finally:
        journal.COMPACT_AT = before
        store.close()


def test_the_new_file_is_stored_before_the_old_one_is_let_go(store, monkeypatch):
    monkeypatch.setattr(journal, "COMPACT_AT", 100)
    own = Journal(store, {})
    own.put("session", "x", "id", "a" * 300)
    assert store.told == ["state-1", "state-2", "-state-1"]
    own.close()


def test_of_two_files_the_newer_one_counts(store):
    old = Journal(store, {})
    old.put("session", "x", "id", "old")
    kept = store.taken()
    new = Journal(store, store.taken())
    new.put("session", "x", "id", "new")
    kept |= store.taken()
    assert set(kept) == {"state-1", "state-2"}
    third = Journal(store, kept)
    assert third.items("session", "x") == {"id": "new"}
    for each in (old, new, third):
        each.close()


def test_what_is_not_ours_in_a_file_is_passed_over():
    text = b'nonsense\n["only","two"]\n{"a":1}\n["k","i","n",1]\n[1,2,3,4]\n["k","i","m",2]'
    assert Held.of(text).items("k", "i") == {"n": 1}


def test_only_forgets_the_others_and_keeps_its_generation(store):
    own = Journal(store, {})
    own.put("session", "stays", "id", 1)
    own.put("session", "goes", "id", 1)
    own.put("task", "goes", "id", 1)
    own.only(["stays"])
    assert [own.items("session", name) for name in ("stays", "goes")] == [{"id": 1}, {}]
    own.close()
    after = Journal(store, store.taken())
    assert after.items("task", "goes") == {}
    assert after.generation == 2
    after.close()


def test_a_file_that_takes_no_more_fails_nobody(store, caplog):
    own = Journal(store, {})
    os.close(own._file)
    own._file = os.open("/dev/full", os.O_WRONLY)
    own.put("session", "x", "id", 1)
    assert own.items("session", "x") == {"id": 1}
    assert "cannot be written" in caplog.text
    own.close()
