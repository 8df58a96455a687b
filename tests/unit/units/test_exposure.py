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

    def run(*command, timeout):
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
    assert exposure.over([(spec("a"), ""), (spec("b"), "")]) == {}
    assert analyze == []


def test_one_process_judges_all_that_have_a_bar_and_the_worse_ones_are_named(analyze):
    found = exposure.over([(spec("a", 0.2), ""), (spec("b", 1.6), ""), (spec("c"), "")])

    ((name, refused),) = found.items()
    assert name == "b"
    assert refused.startswith("$.max_exposure: its unit has 1.7 (systemd-analyze security")
    assert refused.endswith("allowed is at most 1.6")
    (command,) = analyze
    assert [word.rpartition("@")[2] for word in command if "@" in word] == [
        "a.service",
        "b.service",
    ]


def test_a_unit_that_nothing_is_told_of_is_no_unit_within_its_bar(analyze):
    with pytest.raises(SystemctlError, match="nothing of c"):
        exposure.levels({"c": ""})

    assert "nothing of c" in exposure.over([(spec("c", 9.0), "")])["c"]


def test_one_that_cannot_be_judged_leaves_the_judgement_of_the_others(analyze):
    found = exposure.over([(spec("a", 0.2), ""), (spec("b", 1.6), ""), (spec("c", 9.0), "")])

    assert found.keys() == {"b", "c"}
    assert "its unit has 1.7" in found["b"]
    assert "cannot be judged" in found["c"]
