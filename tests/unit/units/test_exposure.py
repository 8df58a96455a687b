"""Whose unit is more exposed than it may be: asked once for all, and not at all for none."""

from pathlib import Path

import pytest

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.sandbox import exposure
from autobot_mcp_bridge.units.systemctl import SystemctlError


@pytest.fixture
def analyze(monkeypatch):
    """systemd-analyze, as far as its last lines; what it was asked with."""
    asked, figures = [], {"a": "0.2", "b": "1.7"}

    def run(*command):
        asked.append(command)
        names = [word.split("@")[1].removesuffix(".service") for word in command if "@" in word]
        line = "→ Overall exposure level for autobot-mcp-bridge@{}.service: {} OK\n"
        return "".join(line.format(name, figures[name]) for name in names if name in figures)

    monkeypatch.setattr(exposure, "run_tool", run)
    monkeypatch.setattr(exposure, "_template", lambda: Path("/dev/null"))
    return asked


def spec(name, bar=None):
    return ServerSpec.model_validate({"name": name, "command": ["x"], "max_exposure": bar})


def test_nobody_is_asked_where_nobody_has_a_bar(analyze):
    assert list(exposure.refusals([spec("a"), spec("b")], {"a": "", "b": ""})) == []
    assert analyze == []


def test_one_process_judges_all_that_have_a_bar_and_the_worse_ones_are_named(analyze):
    specs = [spec("a", 0.2), spec("b", 1.6), spec("c"), spec("installing", 1.0)]
    found = list(exposure.refusals(specs, {"a": "", "b": "", "c": ""}))

    (refused,) = found
    assert refused.startswith("b: $.max_exposure: its unit has 1.7 (systemd-analyze security")
    assert refused.endswith("allowed is at most 1.6")
    (command,) = analyze
    assert [word.rpartition("@")[2] for word in command if "@" in word] == [
        "a.service",
        "b.service",
    ]


def test_a_unit_that_nothing_is_told_of_is_no_unit_within_its_bar(analyze):
    with pytest.raises(SystemctlError, match="nothing of c"):
        list(exposure.refusals([spec("c", 9.0)], {"c": ""}))
