"""Each NV test fails, in the assertion that names its id, once the behaviour is taken away."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from nv.removals import REMOVALS, show
from support.waiting import PATIENCE

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RUN_TIMEOUT = 100.0 * PATIENCE  # seconds for one test in a pytest of its own, on a busy machine


def ident(name):
    return name.split()[0]


def test_every_nv_requirement_can_be_taken_away():
    assert {ident(name) for name in REMOVALS} == {f"NV-{number:02}" for number in range(1, 15)}


@pytest.mark.removal
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.requirement(ident(name)), id=name) for name in REMOVALS],
)
async def test_an_nv_test_fails_once_its_behaviour_is_taken_away(name):
    added = (str(HERE / "site"), str(HERE), os.environ.get("PYTHONPATH", ""))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no"),
        *("tests/nv/test_nv.py", "-k", REMOVALS[name][1], "--tb=short"),
        cwd=ROOT,
        env={
            **os.environ,
            "MCP_BRIDGE_TEST_REMOVE": name,
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

    assert process.returncode == 1, f"with {name} taken away it passes:\n{show(name)}\n{text}"
    assert f"AssertionError: {ident(name)}:" in text, f"it fails elsewhere:\n{show(name)}\n{text}"
