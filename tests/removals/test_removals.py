"""Each test of a requirement fails once what it promises is taken away (table.py).

`make show-protocol` draws some at random; `pytest -m removal tests/removals` runs all.
"""

import re

import pytest

from removals.importing import STALE
from removals.table import REMOVALS
from support.alone import run_alone
from support.fakes import SERVERS

TESTS = SERVERS.parent
# The test itself has failed, and nothing has kept it from being made.
FAILED = re.compile(r"^(\d+ failed)(?!.*\berrors?\b)", re.MULTILINE)
BROKEN = (STALE, "the proxy ended at once", "SyntaxError", "NameError", "ImportError")


@pytest.mark.removal
@pytest.mark.parametrize("name", REMOVALS)
async def test_a_test_fails_once_what_it_shows_is_taken_away(name):
    status, text = await run_alone(
        str(TESTS / REMOVALS[name].test),
        env={"MCP_BRIDGE_TEST_REMOVAL": name, "MCP_BRIDGE_TEST_PATIENCE": "1"},
        paths=(TESTS / "removals" / "site", TESTS),
    )

    assert status == 1, f"with {name} taken away it passes:\n{text[-3000:]}"
    assert FAILED.search(text), f"it does not fail, it cannot run:\n{text[-3000:]}"
    for word in BROKEN:
        assert word not in text, f"{name} breaks more than its behaviour:\n{text[-3000:]}"
