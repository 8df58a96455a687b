"""Each test of a requirement fails once what it promises is taken away (table.py).

`make show-protocol` draws some at random; `pytest -m removal tests/removals` runs all.
"""

import asyncio
import os
import re
import sys

import pytest

from removals.importing import STALE
from removals.table import REMOVALS
from support.fakes import SERVERS
from support.waiting import PATIENCE

TESTS = SERVERS.parent
RUN_TIMEOUT = 120.0 * PATIENCE  # seconds for one test in a pytest of its own, on a busy machine
# The test itself has failed, and nothing has kept it from being made.
FAILED = re.compile(r"^(\d+ failed)(?!.*\berrors?\b)", re.MULTILINE)
BROKEN = (STALE, "the proxy ended at once", "SyntaxError", "NameError", "ImportError")


@pytest.mark.removal
@pytest.mark.parametrize("name", REMOVALS)
async def test_a_test_fails_once_what_it_shows_is_taken_away(name):
    added = (str(TESTS / "removals" / "site"), str(TESTS), os.environ.get("PYTHONPATH", ""))
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--color=no",
            "--tb=short",
        ),
        str(TESTS / REMOVALS[name].test),
        cwd=TESTS.parent,
        env={
            **os.environ,
            "MCP_BRIDGE_TEST_REMOVAL": name,
            "MCP_BRIDGE_TEST_PATIENCE": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, added)),
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(RUN_TIMEOUT):
            out, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = out.decode()

    assert process.returncode == 1, f"with {name} taken away it passes:\n{text[-3000:]}"
    assert FAILED.search(text), f"it does not fail, it cannot run:\n{text[-3000:]}"
    for word in BROKEN:
        assert word not in text, f"{name} breaks more than its behaviour:\n{text[-3000:]}"
