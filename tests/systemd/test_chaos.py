"""A small storm on units; `python tests/chaos.py --units SUITE` is the whole one."""

import os
import random

import pytest

from support.storm import Size, storm
from support.storm_units import on_units

pytestmark = pytest.mark.lab

SIZE = Size(servers=8, tenants=4, clients=40, calls=3_000, kills=6)


async def test_no_call_to_units_is_lost_mixed_up_or_failed_without_a_kill(product):
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    print(f"CHAOS_SEED={seed}")
    async with on_units(product, SIZE) as host:
        summary = await storm(host, SIZE, seed, print)
    assert summary["ok"], summary
