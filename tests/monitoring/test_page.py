"""docs/OPERATE.md says of each word what the code means by it, and of nothing else."""

import re

from autobot_mcp_bridge.cli.main import COMMANDS
from autobot_mcp_bridge.model.death import DeathCause
from autobot_mcp_bridge.model.errors import Cause
from monitoring.rules import RULES, alerts
from monitoring.test_names import drop_reasons
from rules.tree import ROOT

PAGE = (ROOT / "docs" / "OPERATE.md").read_text(encoding="utf-8")


def first_cells(head):
    """The words in the first column of the table whose head begins so."""
    table = PAGE.split(head, 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def test_every_error_is_explained_in_the_order_of_the_code():
    assert first_cells("## What an error means\n") == []
    table = PAGE.split("`mcp-bridge call` prints.\n", 1)[1].split("Why a process", 1)[0]

    assert re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE) == [c.word for c in Cause]


def test_every_cause_of_an_end_is_explained():
    table = PAGE.split("Why a process ended", 1)[1].split("## ", 1)[0]

    assert re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE) == list(DeathCause)


def test_every_alert_is_explained_with_its_severity():
    table = PAGE.split("| alert | severity |", 1)[1].split("\n\n", 1)[0]
    shown = re.findall(r"^\| `(\w+)` \| (\w+) \|", table, re.MULTILINE)

    assert shown == [(name, rule["labels"]["severity"]) for name, rule in alerts().items()]


def test_every_reason_of_a_dropped_line_is_explained():
    assert set(first_cells("| reason of a dropped line |")) == drop_reasons()


def test_page_and_alerts_name_only_commands_that_exist():
    text = PAGE + RULES.read_text(encoding="utf-8")
    named = set(re.findall(r"(?<!/)\bmcp-bridge ([a-z]+)\b(?![-/])", text))

    assert named - {"is"} <= set(COMMANDS), named - set(COMMANDS)
