"""A small storm in every run; tests/chaos.py is the whole one."""

import os
import random

from support.storm import Size, on_children, storm

SIZE = Size(servers=8, tenants=4, clients=40, calls=3_000, kills=10)


async def test_no_call_is_lost_mixed_up_or_failed_without_a_kill():
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    print(f"CHAOS_SEED={seed}")
    async with on_children(SIZE) as host:
        summary = await storm(host, SIZE, seed, print)
    assert summary["ok"], summary
