"""Both ways to ask systemd say the same and do the same."""

import json
from collections.abc import Iterator

import pytest

from lab import labs, recipe
from lab.containers import Container
from lab.layers import MAKE_TIMEOUT, layer
from lab.places import Lab
from support import installed
from support.product import CHECKOUT, checkout_binds

pytestmark = pytest.mark.lab

UNITS = (
    "works.service",
    "works.socket",
    "fails.service",
    "hidden.service",
    "autobot-mcp-bridge@nobody.service",
    "nothing-of-that-name.service",
)
FILES = {
    "works.service": "[Service]\nType=exec\nExecStart=/bin/sleep 1000\nSystemCallFilter=@default @io-event\n",
    "works.socket": "[Socket]\nListenStream=/run/works.sock\n",
    "fails.service": "[Service]\nType=oneshot\nExecStart=/bin/false\n",
    "works.service.d/10-more.conf": "[Service]\nNice=1\nSystemCallFilter=@system-service\n",
}


def pystemd_layer(lab: Lab, suite: str) -> str:
    def make(container: Container) -> None:
        script = "apt-get -q update && apt-get -qy install --no-install-recommends python3-pystemd"
        container.check("sh", "-ec", script, timeout=MAKE_TIMEOUT)

    return layer(lab, suite, "pystemd", ["python3-pystemd"], make)


@pytest.fixture(scope="module", params=recipe.SUITES)
def bound(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Container]:
    """A container with pystemd and units that work, fail and are masked."""
    layers = [pystemd_layer(lab, request.param)]
    name = f"bound-{request.param[:4]}"
    made = labs.up(lab, name, request.param, layers=layers, binds=checkout_binds())
    installed.install(made)
    for path, text in FILES.items():
        made.write(f"/etc/systemd/system/{path}", text)
    made.check("systemctl", "mask", "hidden.service")
    made.check("systemctl", "daemon-reload")
    yield made
    made.down()


def said(container, manager):
    words = ("env", f"PYTHONPATH={CHECKOUT}/supervisor", "PYTHONDONTWRITEBYTECODE=1")
    probe = f"{CHECKOUT}/tests/systemd/manager_probe.py"
    return json.loads(container.check(*words, "/usr/bin/python3", probe, manager, *UNITS))


def test_both_say_and_do_the_same(bound):
    by_program, by_bus = said(bound, "systemctl"), said(bound, "pystemd")

    assert by_bus["did"] == by_program["did"]
    assert by_bus["facts"] == by_program["facts"]


def test_what_they_say_is_so(bound):
    found = said(bound, "pystemd")
    works = found["facts"]["works.service"]

    assert works["drop_ins"] == ["/etc/systemd/system/works.service.d/10-more.conf"]
    assert "setuid" in works["system_calls"]
    assert "mount" not in works["system_calls"]
    assert found["facts"]["hidden.service"]["load"] == "masked"
    assert found["facts"]["nothing-of-that-name.service"]["load"] == "not-found"
    done = {(verb, unit): state for verb, unit, state in found["did"]}
    assert done["start", "works.socket"] == "active"
    assert done["stop", "works.socket"] == "inactive"
    assert done["start", "hidden.service"] == "refused"
    assert done["start", "fails.service"] == "refused"
    assert done["reset_failed", "fails.service"] == "inactive"
