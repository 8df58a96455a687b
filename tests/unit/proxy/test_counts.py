"""The time between crashes, as a histogram."""

import pytest

from autobot_mcp_bridge.proxy.counts import BOUNDS, Intervals


@pytest.mark.requirement("AB-46")
def test_the_time_between_crashes_is_counted_from_the_second_on():
    found = Intervals()
    for now in (100.0, 100.5, 101.5, 131.5, 100_000.0):
        found.happened(now)
    buckets = dict(found.buckets())

    assert [*buckets] == [*(f"{bound:.1f}" for bound in BOUNDS), "+Inf"]
    assert [buckets[name] for name in ("1.0", "5.0", "10.0", "30.0", "900.0", "+Inf")] == [
        *(2, 2, 2, 3, 3, 4)
    ]
    assert found.total == 100_000.0 - 100.0
