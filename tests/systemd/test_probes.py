"""Raw probes against the installed product: servers as units answer as children of the proxy do."""

import pytest

from conformance import bars, cells
from conformance.probing import Peer, see
from support.installed import SERVERS
from support.product import url_of

pytestmark = pytest.mark.lab

MAIN = f"{SERVERS}/conformance/main.py"
SERVED = [mode for mode, wrong in bars.WRONG_NOW.items() if wrong is not None]


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
