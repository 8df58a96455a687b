"""Raw probes of statuses, codes and routing, in both modes: none that is judged is wrong.

One test for each probe and mode; the last of a mode are those that end the server's process.
"""

import pytest
import pytest_asyncio

from conformance import bars, cells
from conformance.probing import see

pytestmark = [pytest.mark.conformance, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def peers():
    """A proxy with a server of each mode and era that probes want, by mode and era."""
    wanted = [(mode, era) for mode in bars.MODES for era in cells.eras(mode)]
    servers = [cells.definition(mode, era, f"{mode}-{era}") for mode, era in wanted]
    async with cells.serving(servers) as bridge:
        yield {(mode, era): cells.peer_of(bridge, f"{mode}-{era}") for mode, era in wanted}


CASES = [
    pytest.param(mode, one, marks=pytest.mark.requirement(*one.shows), id=f"{mode}-{one.ident}")
    for mode in bars.MODES
    for one in cells.in_order(mode)
]


@pytest.mark.parametrize(("mode", "one"), CASES)
async def test_a_probe_sees_what_is_right(peers, mode, one):
    (seen,) = await see([one], peers[mode, one.era])
    print(seen)

    assert seen.verdict != "WRONG", str(seen)
    assert not seen.what.startswith("error ") or one.era == "modern", str(seen)


@pytest.mark.parametrize("mode", bars.MODES)
async def test_most_probes_are_judged(mode):
    assert sum(one.right is not None for one in cells.in_order(mode)) > 50
