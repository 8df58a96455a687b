"""The least set is found, whichever it is, in few tries."""

import math

from hypothesis import given
from hypothesis import strategies as st

from autobot_mcp_bridge.diagnosis.narrow import least


@given(st.data())
async def test_exactly_what_is_needed_is_found(data):
    items = [*range(data.draw(st.integers(1, 200)))]
    needed = data.draw(st.sets(st.sampled_from(items), min_size=1, max_size=3))
    tries = 0

    async def works(some):
        nonlocal tries
        tries += 1
        return needed <= {*some}

    found = await least(items, works)

    assert {*found} == needed
    assert tries <= len(needed) * (math.ceil(math.log2(len(items) + 1)) + 1)


async def test_where_nothing_is_needed_nothing_is_found():
    async def works(_some):
        return True

    assert await least([1, 2, 3], works) == []
