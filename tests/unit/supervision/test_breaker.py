"""The failure breaker as a pure state machine (NV-07)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.model.server import Breaker as Settings
from autobot_mcp_bridge.supervision.breaker import Breaker, BreakerState


def crash(breaker, *times):
    for time in times:
        breaker.crashed(time)


def test_five_crashes_in_the_window_are_tolerated_and_the_sixth_opens_it():
    breaker = Breaker(Settings())

    crash(breaker, 0, 1, 2, 3, 4)
    assert breaker.may_start(4)
    crash(breaker, 5)

    assert not breaker.may_start(5)
    assert breaker.retry_after(8) == 7


@pytest.mark.requirement("AB-46")
def test_an_opening_is_counted_once_however_long_it_lasts():
    breaker = Breaker(Settings())
    crash(breaker, *range(6))
    assert breaker.openings == 1

    assert breaker.may_start(100)
    crash(breaker, 101)  # the probe: it stays open
    breaker.reset()
    crash(breaker, *range(200, 206))

    assert breaker.openings == 2


def test_crashes_that_are_far_apart_never_open_it():
    breaker = Breaker(Settings())

    crash(breaker, *range(0, 1200, 12))

    assert breaker.state is BreakerState.CLOSED


def test_after_the_wait_one_start_is_tried_and_its_answer_closes_it():
    breaker = Breaker(Settings())
    crash(breaker, *range(6))

    assert not breaker.may_start(14.9)
    assert breaker.may_start(15)
    assert not breaker.may_start(15)
    breaker.answered()

    assert breaker.may_start(16)
    assert breaker.recent(16) == 0


def test_each_probe_that_crashes_doubles_the_wait_up_to_a_quarter_of_an_hour():
    breaker = Breaker(Settings())
    crash(breaker, *range(6))
    now, waits = 5.0, []

    for _ in range(9):
        waits.append(breaker.retry_after(now))
        now += waits[-1]
        assert not breaker.may_start(now - 0.1)
        assert breaker.may_start(now)
        crash(breaker, now)

    assert waits == [10, 20, 40, 80, 160, 320, 640, 900, 900]


def test_after_an_answer_the_waits_begin_anew():
    breaker = Breaker(Settings())
    crash(breaker, *range(6))
    assert breaker.may_start(15)
    crash(breaker, 15)
    assert breaker.may_start(35)
    breaker.answered()

    crash(breaker, *range(40, 46))

    assert breaker.retry_after(45) == 10


def test_without_probe_only_a_reset_closes_it():
    breaker = Breaker(Settings(probe=False))
    crash(breaker, *range(6))

    assert not breaker.may_start(10_000)
    breaker.reset()

    assert breaker.may_start(10_000)


@given(times=st.lists(st.floats(0, 1000), max_size=60))
def test_it_is_open_exactly_when_more_than_the_limit_fell_into_one_window(times):
    breaker = Breaker(Settings(crashes=3, window=10))
    opened = False

    for index, time in enumerate(sorted(times)):
        breaker.crashed(time)
        recent = [then for then in sorted(times)[: index + 1] if time - then < 10]
        opened = opened or len(recent) > 3

        assert (breaker.state is not BreakerState.CLOSED) == opened


def test_a_dump_goes_on_in_another_breaker():
    changes = []
    first = Breaker(Settings(crashes=1, window=60), lambda: changes.append(1))
    second = Breaker(Settings(crashes=1, window=60))
    first.crashed(10.0)
    second.load(first.dump())
    second.crashed(11.0)
    assert (second.state, second.total, second.retry_after(16.0)) == (BreakerState.OPEN, 2, 5.0)
    first.crashed(11.0)
    first.reset()
    assert len(changes) == 3
    second.load(first.dump())
    assert second.may_start(12.0)


@pytest.mark.parametrize("dump", [None, [], ["closed"], ["no state", 1, 1.0, 1.0, []], "closed"])
def test_what_is_no_dump_changes_nothing(dump):
    breaker = Breaker(Settings(crashes=1, window=60))
    breaker.load(dump)
    assert breaker.dump() == ["closed", 0, 0.0, 10.0, []]
