"""Suite and probes against the installed product: units answer as children of the proxy do."""

import pytest

from conformance import bars, cells, suite
from conformance.probing import Peer, see
from support.installed import SERVERS
from support.product import url_of

pytestmark = pytest.mark.lab

MAIN = f"{SERVERS}/conformance/main.py"
SERVED = [mode for mode, wrong in bars.WRONG_NOW.items() if wrong is not None]
HELD = [bar for bar in bars.SUITE if bar.now is not None and bar.era == "both"]


def definition(mode, era):
    more = {} if mode == bars.SHARED else {"sessions": mode}
    return {"name": era, "command": ["/usr/bin/python3", "-S", MAIN, "--era", era], **more}


@pytest.mark.parametrize("mode", SERVED)
async def test_no_probe_is_wrong_but_those_that_are_known(product, mode, record_property):
    probes = cells.in_order()
    eras = sorted({one.era for one in probes})
    await product.serve(*(definition(mode, era) for era in eras))
    found = []
    for era in eras:
        peer = Peer(url_of(era), product.token(era), product.dial)
        found += await see((one for one in probes if one.era == era), peer)
    wrong = {seen.probe.ident: seen for seen in found if seen.verdict == "WRONG"}
    record_property("wrong_beyond_the_goal", len(wrong.keys() - bars.WRONG_AT_GOAL[mode]))
    print(*map(str, wrong.values()), sep="\n")

    known = bars.WRONG_NOW[mode] or set()
    assert [str(seen) for ident, seen in wrong.items() if ident not in known] == []
    assert len(found) == len(probes)


@pytest.mark.parametrize("bar", HELD, ids=lambda bar: f"{bar.sessions}-{bar.revision}")
async def test_the_suite_passes_at_least_what_it_has_passed(product, bar, need, record_property):
    need("clients")
    await product.serve(definition(bar.sessions, bar.era))
    headers = {"Authorization": f"Bearer {product.token(bar.era)}"}
    report = await suite.run(url_of(bar.era), headers, bar.revision, product.dial)
    record_property("short_of_the_goal", max(0, bar.goal - report.passed))

    assert report.passed >= bar.now, [f"{one.name}: {one.failures}" for one in report.failing]
