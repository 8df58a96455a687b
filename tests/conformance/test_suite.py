"""The public conformance suite, in front of a server of each era: at least what bars.py holds."""

import asyncio
from functools import cache

import pytest

from conformance import bars, cells

pytestmark = pytest.mark.conformance

HELD = [bar for bar in bars.SUITE if bar.now is not None and bar.goal]
# How servers of the handshake only fail a probe of their era.
FAILING_DISCOVER = ("unknown", "invalid", "silent", "exits", "hangs")
SERVED = sorted({bar.sessions for bar in HELD})


@cache
def reports(mode):
    """All runs of the mode at once: each is idle for most of its time."""
    return asyncio.run(cells.reports(mode))


@pytest.mark.parametrize("bar", HELD, ids=lambda bar: f"{bar.sessions}-{bar.era}-{bar.revision}")
def test_the_suite_passes_at_least_what_it_has_passed(bar, need, record_property):
    need("clients")
    report = reports(bar.sessions)[bar.era, bar.revision]
    failing = [scenario.name for scenario in report.failing]
    record_property("passed", report.passed)
    print(f"{report.passed} of {len(report.scored)} pass, held are {bar.now}, goal {bar.goal}")

    assert len(report.scored) == bars.OF[bar.revision]
    assert report.passed >= bar.now, [f"{one.name}: {one.failures}" for one in report.failing]
    if bar.may_fail and report.passed >= bar.goal:
        assert set(failing) <= bar.may_fail


@pytest.mark.parametrize("mode", SERVED)
async def test_a_server_that_fails_a_probe_of_its_era_serves_both_kinds_of_clients(mode):
    servers = [cells.definition(mode, "legacy", how, "--discover", how) for how in FAILING_DISCOVER]
    async with cells.serving(servers) as bridge:
        for how in FAILING_DISCOVER:
            async with bridge.modern(how) as client:
                assert await client.text("gw_echo", value=how) == f'"{how}"'
            async with bridge.session(how) as session:
                assert await session.text("gw_echo", value=how) == f'"{how}"'
            assert await bridge.metric("mcp_bridge_crashes_total", server=how) == 0
