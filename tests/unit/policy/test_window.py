"""Sliding windows: never more than the rate allows within any window, and nothing is kept for ever."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.model.rates import rate_of
from autobot_mcp_bridge.policy.limits import window
from autobot_mcp_bridge.policy.limits.counter import CountError, Limit
from autobot_mcp_bridge.policy.limits.window import MOST_MARKS, MemoryCounter, Window


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def limit(text, key="k"):
    return Limit(key, rate_of(text), "a limit")


@given(
    st.integers(1, 5),
    st.lists(st.floats(0, 0.7, allow_nan=False), min_size=1, max_size=60),
)
async def test_no_window_of_any_position_holds_more_than_its_rate(count, pauses):
    clock = Clock()
    counter = MemoryCounter(clock)
    taken = deque()
    for pause in pauses:
        clock.now += pause
        full = await counter.take([limit(f"{count}/second")])
        while taken and taken[0] <= clock.now - 1:
            taken.popleft()
        if full is None:
            assert len(taken) < count
            taken.append(clock.now)
        else:
            # Refused only when it is full, and the wait that is told is right.
            assert len(taken) == count
            assert full.retry_after == pytest.approx(taken[0] + 1 - clock.now)


async def test_an_event_counts_in_all_windows_or_in_none():
    clock = Clock()
    counter = MemoryCounter(clock)
    wide, narrow = limit("3/minute", "wide"), limit("1/minute", "narrow")
    assert await counter.take([wide, narrow]) is None
    for _ in range(5):
        assert (await counter.take([wide, narrow])).limit is narrow
    assert await counter.take([wide]) is None
    assert await counter.take([wide]) is None
    assert (await counter.take([wide, narrow])).limit is wide


async def test_a_rate_of_none_lets_nothing_through():
    full = await MemoryCounter(Clock()).take([limit("0/hour")])
    assert full.retry_after == 3600


async def test_a_wide_window_keeps_few_marks_and_is_never_emptied_too_early():
    clock = Clock()
    counted = Window(rate_of("100000/second"))
    for _ in range(50_000):
        assert counted.wait(clock.now) == 0
        counted.add(clock.now)
        clock.now += 0.00001
    assert len(counted._marks) <= MOST_MARKS + 2
    clock.now = 1000.0 + 0.999
    counted.wait(clock.now)
    assert counted.count == 50_000
    clock.now += 0.51
    counted.wait(clock.now)
    assert counted.count == 0


async def test_windows_without_events_are_forgotten_and_too_many_refuse_what_is_new(monkeypatch):
    monkeypatch.setattr(window, "MOST_WINDOWS", 10)
    clock = Clock()
    counter = MemoryCounter(clock)
    for number in range(10):
        assert await counter.take([limit("1/minute", str(number))]) is None
    with pytest.raises(CountError):
        await counter.take([limit("1/minute", "one more")])
    assert (await counter.take([limit("1/minute", "3")])) is not None
    clock.now += 61
    assert await counter.take([limit("1/minute", "one more")]) is None
    assert len(counter._windows) == 1
