"""A tool asks the user in mid-call, and a real client's answer reaches it."""

import pytest

from clients.drivers import Target
from clients.runs import RUNS
from conformance import bars, cells

pytestmark = pytest.mark.clients

TOOLS = {
    bars.HANDSHAKE: ("test_elicitation", {"message": "who?"}, "m@e"),
    bars.MODERN: ("test_input_required_result_elicitation", {}, "Hello, me!"),
}
CASES = [
    pytest.param(mode, run, id=f"{mode}-{run}")
    for mode in bars.MODES
    for run in RUNS
    if run.elicits
]


@pytest.mark.parametrize(("mode", "run"), CASES)
async def test_the_answer_of_the_client_reaches_the_tool(mode, run, need, tmp_path):
    need("clients")
    need(run.needs)
    tool, arguments, wanted = TOOLS[run.version]
    async with cells.serving([cells.definition(mode, "both", "asks")]) as bridge:
        target = Target(bridge.url("asks"), bridge.token("asks"), tool, arguments)
        seen = await run.drive(target, tmp_path)

    assert seen.version == run.told
    assert wanted in seen.text
    assert seen.asked == 1
