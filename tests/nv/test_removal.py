"""Each NV test fails, in the assertion that names its id, once the behaviour is taken away."""

from pathlib import Path

import pytest

from nv.removals import REMOVALS, show
from support.alone import run_alone

HERE = Path(__file__).resolve().parent


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
    status, text = await run_alone(
        "tests/nv/test_nv.py",
        "-k",
        REMOVALS[name][1],
        env={"MCP_BRIDGE_TEST_REMOVE": name},
        paths=(HERE / "site", HERE),
    )

    assert status == 1, f"with {name} taken away it passes:\n{show(name)}\n{text}"
    assert f"AssertionError: {ident(name)}:" in text, f"it fails elsewhere:\n{show(name)}\n{text}"
