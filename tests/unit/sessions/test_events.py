"""The events of a stream: numbered, bounded, read by one at a time."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.channels.backlog import OVERHEAD
from autobot_mcp_bridge.sessions.events import EventStream, Store, place_of

LONG = 3600.0


class Connection:
    """A reader's connection that is well."""

    def __init__(self):
        self.cuts = 0

    def cut(self):
        self.cuts += 1

    def lost(self):
        return False


class Lost:
    """Counts the events that were lost before they were sent."""

    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1


def stream(store=None, *, events=8, size=1 << 20, lost=None, name="s"):
    return EventStream(name, events, size, store or Store(1 << 20), lost or Lost())


def number(index):
    return b"%d" % index


async def taken(reader, count):
    return [await reader.next(LONG) for _ in range(count)]


async def begun(reader):
    """A reader's wait, once it has begun."""
    waiting = asyncio.create_task(reader.next(LONG))
    await asyncio.wait([waiting], timeout=0)
    return waiting


async def test_events_are_numbered_and_an_end_is_told():
    made = stream()
    reader = made.read(None, Connection())
    made.push(b"a")
    made.push(b"b")
    made.close()
    assert await taken(reader, 2) == [("s.1", b"a"), ("s.2", b"b")]
    with pytest.raises(EOFError):
        await reader.next(LONG)


async def test_a_reader_waits_for_what_comes():
    made = stream()
    reader = made.read(None, Connection())
    waiting = await begun(reader)
    made.push(b"a")
    assert await waiting == ("s.1", b"a")
    assert await reader.next(0.01) is None


async def test_the_newest_reader_wins_and_the_one_before_is_ended():
    made = stream()
    old = Connection()
    first = made.read(None, old)
    waiting = await begun(first)
    second = made.read(0, Connection())
    with pytest.raises(EOFError):
        await waiting
    assert old.cuts == 1
    first.release()
    assert made.taken
    made.push(b"a")
    assert await second.next(LONG) == ("s.1", b"a")
    assert not first.returns
    assert second.returns


async def test_a_fresh_reader_gets_what_nobody_was_sent():
    made = stream()
    made.push(b"a")
    reader = made.read(None, Connection())
    await reader.next(LONG)
    reader.release()
    made.push(b"b")
    assert await made.read(None, Connection()).next(LONG) == ("s.2", b"b")
    assert await made.read(0, Connection()).next(LONG) == ("s.1", b"a")


async def test_each_place_has_an_id_that_no_event_has():
    made = stream()
    made.push(b"a")
    cursors = [made.read(0, Connection()).cursor for _ in range(3)]
    assert len({"s.0", "s.1", *cursors}) == 5
    assert [place_of(cursor) for cursor in cursors] == [("s", 0)] * 3


async def test_a_reader_that_is_asked_for_writes_something():
    made = stream()
    reader = made.read(None, Connection())
    waiting = await begun(reader)
    reader.ask()
    assert await waiting is None
    made.push(b"a")
    assert await reader.next(LONG) == ("s.1", b"a")


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 10))
def test_a_reader_gets_all_events_after_the_last_or_is_refused(count, read, most):
    lost = Lost()
    made = stream(events=most, lost=lost)
    reader = made.read(None, Connection())
    for index in range(1, count + 1):
        made.push(number(index))
        if index <= read:
            made.event_after(index - 1)
    reader.release()
    first = max(1, count - most + 1)
    assert lost.count == max(0, first - 1 - min(read, count))
    for after in range(count + 3):
        if first - 1 <= after <= count:
            place = made.read(after, Connection()).place
            found = []
            while (event := made.event_after(place)) is not None:
                place = event[0]
                found.append(event)
            assert found == [(index, number(index)) for index in range(after + 1, count + 1)]
        else:
            with pytest.raises(LookupError):
                made.read(after, Connection())


def test_what_was_sent_makes_place_for_what_was_not():
    size = 100 + OVERHEAD
    store = Store(4 * size)
    lost = Lost()
    idle, busy = stream(store, lost=lost), stream(store, lost=lost)
    for _ in range(4):
        idle.push(bytes(100))
    for place in range(3):
        idle.event_after(place)
    busy.push(bytes(100))
    assert lost.count == 0
    assert store.used == 2 * size  # the one that was not sent, and the new one
    for _ in range(4):
        busy.push(bytes(100))
    assert lost.count == 2  # of its own
    assert idle.read(3, Connection()).place == 3
    with pytest.raises(LookupError):
        idle.read(2, Connection())


def test_an_event_that_can_have_no_place_costs_no_other():
    lost = Lost()
    made = stream(size=1000, lost=lost)
    made.push(b"a")
    made.push(bytes(1000))
    assert lost.count == 1
    assert made.last == 1


async def test_an_answer_is_never_lost_to_its_reader_and_kept_if_it_fits():
    store = Store(1000)
    made = stream(store, size=1000)
    reader = made.read(None, Connection())
    made.push(b"progress")
    made.end(bytes(5000), lambda: b"too large")
    assert store.used == len(b"progress") + OVERHEAD
    assert await taken(reader, 2) == [("s.1", b"progress"), ("s.2", bytes(5000))]
    reader.release()
    again = made.read(1, Connection())
    assert await again.next(LONG) == ("s.2", b"too large")
    made.forget()
    again.release()
    assert store.used == 0


async def test_an_answer_too_large_that_nobody_reads_is_not_kept():
    made = stream(Store(1000), size=1000)
    made.end(bytes(5000), lambda: b"too large")
    assert await made.read(0, Connection()).next(LONG) == ("s.1", b"too large")


@pytest.mark.parametrize("read", [False, True])
async def test_a_forgotten_stream_holds_nothing_once_it_is_read(read):
    store = Store(1000)
    made = stream(store)
    made.push(b"a")
    reader = made.read(None, Connection()) if read else None
    made.forget()
    if reader is not None:
        assert await reader.next(LONG) == ("s.1", b"a")
        made.push(b"b")
        assert await reader.next(LONG) == ("s.2", b"b")
        reader.release()
    made.push(b"c")
    assert store.used == 0
    assert not store.spare


@pytest.mark.parametrize("wrong", ["", ".", "s", "s.", "s.x", "s.-1", "s.²", "s." + "9" * 5000])
def test_an_id_of_another_form_is_nobodys(wrong):
    with pytest.raises(LookupError):
        place_of(wrong)
