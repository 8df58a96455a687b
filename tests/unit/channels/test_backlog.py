"""What waits for a slow reader is bounded, alone and together with others."""

from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.channels.backlog import OVERHEAD, Backlog, Room


def made(max_events=100, max_bytes=1000 * OVERHEAD, room=None):
    lost = []
    return Backlog(max_events, max_bytes, lambda: lost.append(1), room), lost


def drained(backlog):
    return [backlog.pop() for _ in range(len(backlog))]


def test_the_oldest_goes_when_there_are_too_many():
    backlog, lost = made(max_events=2)
    for event in (b"1", b"2", b"3"):
        backlog.push(event)

    assert drained(backlog) == [b"2", b"3"]
    assert len(lost) == 1


def test_one_that_fits_nowhere_is_lost_and_counted():
    backlog, lost = made(max_bytes=500)
    backlog.push(b"x" * 501)

    assert drained(backlog) == []
    assert len(lost) == 1


def test_who_shares_a_room_gives_back_what_it_took():
    room = Room(10 * OVERHEAD)
    first, _ = made(room=room)
    second, lost = made(room=room)
    for _ in range(9):
        first.push(b"x")
    second.push(b"y")
    assert lost

    first.clear()
    second.push(b"y")

    assert drained(second) == [b"y"]
    assert room.used == 0


@given(
    st.lists(st.tuples(st.booleans(), st.binary(max_size=600)), max_size=80),
    st.integers(1, 8),
    st.integers(0, 3000),
    st.integers(0, 3000),
)
def test_no_bound_is_ever_passed_and_nothing_is_lost_without_a_word(steps, events, size, limit):
    room = Room(limit)
    pair = [made(events, size, room) for _ in range(2)]
    pushed = 0
    for second, event in steps:
        pair[second][0].push(event)
        pushed += 1
        assert room.used <= limit
        for backlog, _ in pair:
            assert len(backlog) <= events

    left = sum(len(drained(backlog)) for backlog, _ in pair)
    assert left + sum(len(lost) for _, lost in pair) == pushed
    assert room.used == 0
