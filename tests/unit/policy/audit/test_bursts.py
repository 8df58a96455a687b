"""Many 401 at once are told once (SM-09)."""

import pytest

from autobot_mcp_bridge.policy.audit.bursts import LIMIT, MOST, QUIET, WINDOW, Bursts

pytestmark = pytest.mark.requirement("SM-09")


def told(*times):
    bursts = Bursts()
    return [now for now in times if bursts.refused(now)]


def test_the_fifth_within_a_minute_is_told():
    assert (LIMIT, WINDOW, QUIET, MOST) == (5, 60.0, 300.0, 256)
    assert told(0, 10, 20, 30, 59.9) == [59.9]


def test_five_in_more_than_a_minute_are_not():
    assert told(0, 15, 30, 45, 60) == []
    assert told(*range(0, 3000, 16)) == []


def test_after_it_there_is_quiet_for_five_minutes():
    assert told(*range(305)) == [4, 304]


def test_no_more_than_256_are_kept_however_many_come():
    bursts = Bursts()
    for number in range(10_000):
        bursts.refused(number / 1000)

    assert bursts.recent == MOST
    assert (bursts.refusals, bursts.alerts) == (10_000, 1)
