"""Real clients list, call and hear of progress through the installed product, servers as units.

They run here and reach the container's port through a forwarder, since its addresses mean something
within the lab's network only.
"""

import pytest

from clients.drivers import Target
from clients.runs import RUNS
from conformance.forward import Forwarder
from support.installed import SERVERS
from support.product import url_of

pytestmark = pytest.mark.lab

MAIN = f"{SERVERS}/conformance/main.py"
STEPS = {"count": 2, "pause": 0.1}


@pytest.mark.parametrize("run", RUNS, ids=str)
async def test_a_real_client_lists_calls_and_hears_of_progress(product, run, need, tmp_path):
    need("clients")
    need(run.needs)
    definition = {"name": "real", "command": ["/usr/bin/python3", "-S", MAIN, "--era", "both"]}
    if "real" not in product.accepted():
        await product.serve(definition)
    tool = ("gw_progress", STEPS) if run.progress else ("gw_echo", {"value": "across"})
    async with Forwarder(url_of("real"), {}, product.dial) as forwarder:
        target = Target(forwarder.url, product.token("real"), *tool)
        seen = await run.drive(target, tmp_path)

    assert seen.version == run.told
    assert "gw_echo" in seen.tools
    assert seen.text == ("done" if run.progress else '"across"')
    if run.progress:
        assert seen.progress == 2
