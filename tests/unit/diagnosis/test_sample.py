"""Diagnostic instances: bounded by themselves, and only those of doctors are swept."""

import os
import time

import pytest

from autobot_mcp_bridge.diagnosis import sample
from autobot_mcp_bridge.diagnosis.original import Original
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.manager import UnitFacts

WAY_OUT = "mcp-bridge-egress@one.socket"


class Manager:
    """systemd that does all that it is asked."""

    name = "fake"

    def __init__(self, *active):
        self.stopped = []
        self.active = active

    def facts(self, unit):
        state = "active" if unit in self.active else "inactive"
        return UnitFacts(active=state, drop_ins=("/run/one.conf",))

    def start(self, unit): ...

    def stop(self, unit):
        self.stopped.append(unit)

    def reset_failed(self, unit): ...


@pytest.fixture
def units(tmp_path, monkeypatch):
    monkeypatch.setattr(sample, "UNITS", tmp_path)
    return tmp_path


def folder(units, name, file=None, age=0.0):
    made = units / name
    made.mkdir()
    if file is not None:
        (made / file).touch()
    then = time.time() - age
    os.utime(made, (then, then))
    return made


def test_each_process_of_one_ends_by_itself(units):
    spec = ServerSpec.model_validate({"name": "one", "command": ["/bin/cat"]})
    own = Original(spec, ("/bin/cat",), UnitFacts(), (), {"50.conf": "[Service]\n"})

    with sample.sample(own, ["PrivateNetwork=no"], Manager(), 42.4) as made:
        (found,) = units.glob("autobot-mcp-bridge@*")
        lines = (found / sample.LAST).read_text(encoding="utf-8").splitlines()
        assert made.instance in found.name

    assert lines[0] == "[Service]"
    assert {"RuntimeMaxSec=42s", "PrivateNetwork=no"} <= {*lines}
    assert [*units.iterdir()] == []


@pytest.mark.parametrize(
    ("before", "during", "closed"),
    [
        ((), (), True),
        ((WAY_OUT,), (), False),  # a server that has just ended has it, or an administrator
        ((), ("autobot-mcp-bridge@one.service",), False),
    ],
)
def test_a_way_out_that_a_try_has_opened_is_closed_again(units, before, during, closed):
    keys = {"name": "one", "command": ["/bin/cat"]}
    network = {"mode": "names", "allow": ["api.example.com"]}
    spec = ServerSpec.model_validate({**keys, "network": network})
    own = Original(spec, ("/bin/cat",), UnitFacts(), (), {})
    manager = Manager(*before)

    with sample.sample(own, [], manager, 1.0):
        manager.active = during

    assert (WAY_OUT in manager.stopped) is closed


def test_what_a_killed_doctor_has_left_is_swept(units):
    prefix, manager = "autobot-mcp-bridge@doctor-", Manager()
    gone = [
        folder(units, f"{prefix}0123456789ab.service.d", sample.LAST),
        folder(units, f".{prefix}1123456789ab.service.d", age=3600.0),
    ]
    kept = [
        folder(units, f"{prefix}2123456789ab.service.d", "override.conf"),  # a server called so
        folder(units, f"{prefix}files.service.d", sample.LAST),
        folder(units, f".{prefix}3123456789ab.service.d"),  # a doctor has just begun
    ]

    swept = sample.sweep(manager)

    assert sorted(swept) == ["doctor-0123456789ab", "doctor-1123456789ab"]
    assert [path for path in gone if path.exists()] == []
    assert [path for path in kept if not path.exists()] == []
    assert not any("2123456789ab" in unit or "files" in unit for unit in manager.stopped)
