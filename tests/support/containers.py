"""Real systemd for tests: one container per suite and session, made when a test first asks.

    def test_…(container):   runs once per suite, each time with a container of it
    def test_…(lab):         for tests that make containers of their own

A test leaves its container as others can use it: with units of its own names, which it stops.
"""

import asyncio
import json
from collections.abc import Iterator

import pytest

from lab import labs, recipe
from lab.containers import Container
from lab.machine import Machine
from lab.places import Lab
from support.missing import Needs
from support.waiting import WITHIN, eventually


@pytest.fixture(scope="session")
def lab(need: Needs) -> Iterator[Lab]:
    need("lab")
    own = Lab.of_process()
    labs.sweep(own.cache)
    yield own
    for place in own.places():
        Container(place).down()


@pytest.fixture(scope="session", params=recipe.SUITES)
def container(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Container]:
    up = labs.up(lab, request.param, request.param)
    yield up
    up.down()


def properties(container: Machine, unit: str, *names: str) -> dict[str, str]:
    """Return what systemd says of a unit, loaded or not."""
    shown = container.check("systemctl", "show", f"--property={','.join(names)}", unit)
    return dict(line.split("=", 1) for line in shown.splitlines())


async def reaches(
    container: Machine, unit: str, *, within: float = WITHIN, **wanted: str
) -> dict[str, str]:
    """Wait until a unit has these properties and return them.

    Raises:
        AssertionError: it had others all the time; the message shows the last ones.
    """
    last: dict[str, str] = {}

    async def has() -> bool:
        last.update(await asyncio.to_thread(properties, container, unit, *wanted))
        return last == wanted

    try:
        await eventually(has, within=within)
    except AssertionError:
        raise AssertionError(f"{unit} is not {wanted} within {within} s but {last}") from None
    return last


def entries(container: Machine, *matches: str) -> list[dict[str, object]]:
    """Return the journal's entries that match, the oldest first."""
    container.check("journalctl", "--sync")
    shown = container.check("journalctl", "--output=json", "--no-pager", *matches)
    return [json.loads(line) for line in shown.splitlines()]
