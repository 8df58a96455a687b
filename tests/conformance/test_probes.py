"""Raw probes of statuses, codes and routing: no other is wrong than bars.py says."""

import pytest

from conformance import bars, cells

pytestmark = pytest.mark.conformance

SERVED = [mode for mode, wrong in bars.WRONG_NOW.items() if wrong is not None]


@pytest.mark.parametrize("mode", SERVED)
async def test_no_probe_is_wrong_but_those_that_are_known(mode, record_property):
    found = await cells.probed(mode)
    judged = [seen for seen in found if seen.verdict]
    wrong = {seen.probe.ident: seen for seen in judged if seen.verdict == "WRONG"}
    known = bars.WRONG_NOW[mode] or set()
    record_property("right", len(judged) - len(wrong))
    print(*map(str, wrong.values()), sep="\n")

    assert len(found) == len(cells.in_order())
    assert len(judged) > 50
    assert [str(seen) for ident, seen in wrong.items() if ident not in known] == []
    assert known <= wrong.keys(), f"right now, take them out: {known - wrong.keys()}"
