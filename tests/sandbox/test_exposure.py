"""What systemd itself says of each profile in each network mode."""

import re

import pytest

from sandbox.faces import FACES
from support import installed as units
from support.installed import instances

pytestmark = pytest.mark.lab

LEVEL = re.compile(r"Overall exposure level for autobot-mcp-bridge@(\S+)\.service: ([0-9.]+)")
UNITS = "/etc/systemd/system"


@pytest.fixture(scope="module")
def laid(container):
    """The units of all of them, in a container."""
    units.install(container)
    for name in ("npx", "uvx"):
        container.write(f"/opt/live/{name}", '#!/bin/sh\nexec "$@"\n', mode=0o755)
    with instances(container, [face.spec() for face in FACES]) as made:
        yield container, dict(zip(FACES, made, strict=True))


@pytest.fixture(scope="module")
def levels(laid):
    """Instance to its figure, without asking what runs."""
    container, made = laid
    paths = [f"{UNITS}/{one.service}" for one in made.values()]
    said = container.check("systemd-analyze", "security", "--offline=true", "--no-pager", *paths)
    return {name: float(level) for name, level in LEVEL.findall(said)}


@pytest.mark.parametrize("face", FACES, ids=str)
def test_the_exposure_is_within_its_bar(laid, levels, face, record_property):
    level = levels[laid[1][face].name]
    record_property("exposure", level)

    assert level <= face.exposure


def test_the_highest_of_each_kind_is_told(laid, levels, record_property):
    highest: dict[str, float] = {}
    for face in FACES:
        kind = (
            f"{'browser_' * (face.profile == 'browser')}{'online' if face.is_online else 'offline'}"
        )
        highest[kind] = max(highest.get(kind, 0.0), levels[laid[1][face].name])
    for kind, level in highest.items():
        record_property(kind, level)

    assert len(highest) == 4


def test_without_the_sandbox_the_exposure_would_be_high(laid, levels):
    container, _ = laid
    container.write(f"{UNITS}/plain.service", "[Service]\nExecStart=/bin/true\n")
    said = container.check(
        "systemd-analyze", "security", "--offline=true", "--no-pager", f"{UNITS}/plain.service"
    )

    assert float(said.rsplit(": ", 1)[1].split()[0]) > 9 > max(levels.values())


@pytest.mark.parametrize("face", FACES, ids=str)
def test_systemd_analyze_verify_has_nothing_to_say(laid, face):
    container, made = laid
    one = made[face]
    verified = container.run("systemd-analyze", "verify", "--man=no", one.service, one.socket)

    assert (verified.status, verified.out, verified.err) == (0, "", "")
