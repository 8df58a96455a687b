"""The rules and the dashboard as they stand in monitoring/, and promtool to judge them."""

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rules.tree import ROOT

RULES = ROOT / "monitoring" / "alerts.yml"
DASHBOARD = ROOT / "monitoring" / "grafana.json"
# What Grafana puts in before Prometheus sees it, and the selection "All".
FILLED = {"$__rate_interval": "5m", "$__range": "1h", "$host": ".*", "$server": ".*"}
PROMTOOL_TIMEOUT = 60.0  # seconds; it takes one


@cache
def rules() -> tuple[dict[str, Any], ...]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return tuple(rule for group in groups for rule in group["rules"])


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def records() -> set[str]:
    return {rule["record"] for rule in rules() if "record" in rule}


def panels() -> Iterator[dict[str, Any]]:
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        yield panel
        yield from panel.get("panels", ())


def dashboard_expressions() -> list[str]:
    """Every query of the dashboard, as Prometheus would get it."""
    found = []
    for panel in panels():
        for target in panel.get("targets", ()):
            text = target["expr"]
            for name, value in FILLED.items():
                text = text.replace(name, value)
            found.append(text)
    return found


def selectors(expression: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Each metric that an expression names, with the values that it asks of each label."""
    for name, _, matchers in re.findall(
        r"\b((?:mcp_bridge[_a-z0-9:]*)|up)\b({([^}]*)})?", expression
    ):
        wanted = {
            label: values.split("|")
            for label, values in re.findall(r'([a-z_]+)\s*(?:=|!=|=~|!~)\s*"([^"]*)"', matchers)
        }
        yield name, wanted


def run(program: Path, *words: str | Path) -> str:
    """Run promtool, which must be content; what it says."""
    done = subprocess.run(
        [program, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PROMTOOL_TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
