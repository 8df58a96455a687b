"""Rules and dashboard ask only for what the running proxy tells."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from autobot_mcp_bridge.config.disk import KINDS, Disk
from autobot_mcp_bridge.egress.counts import Counts
from autobot_mcp_bridge.egress.refusals import Reason
from autobot_mcp_bridge.model.death import DeathCause
from autobot_mcp_bridge.model.errors import Cause
from autobot_mcp_bridge.model.promises import Kept, Promise
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.policy.audit.outcome import Status
from autobot_mcp_bridge.proxy.egress import EgressFamilies
from autobot_mcp_bridge.proxy.host_metrics import DiskFamilies, HostFamilies, TlsFamilies
from autobot_mcp_bridge.proxy.refusals import Reason as Refused
from autobot_mcp_bridge.proxy.tls import Tls
from autobot_mcp_bridge.proxy.unit_metrics import UnitFamilies
from autobot_mcp_bridge.runtimes.base import Usage
from autobot_mcp_bridge.supervision.cgroups import EVENTS
from monitoring.rules import (
    DASHBOARD,
    alerts,
    dashboard_expressions,
    panels,
    records,
    rules,
    run,
    selectors,
)
from rules.tree import modules
from support.bridge import Bridge
from support.client import code_of
from support.fakes import echo
from support.installed import spec_of


def drop_reasons():
    """The words with which the code counts what it drops."""
    found = {"stderr_budget"}  # counted by the runtimes, named by metrics.py
    for module in modules():
        found |= set(
            re.findall(r'on_dropped(?:\(|, )"([a-z_]+)"', module.read_text(encoding="utf-8"))
        )
    return found


# Labels that Prometheus adds to what it scrapes.
SCRAPED = {"job", "instance"}
# What each label may say where the proxy has not said it in the run below.
WORDS = {
    "outcome": {cause.word for cause in Cause} | {"ok", "client_gone"},
    "cause": {cause.value for cause in DeathCause},
    "state": {state.value for state in State},
    "job": {"mcp-bridge"},
    "reason": drop_reasons() | {reason.word for reason in Reason} | set(Refused),
    "event": set(EVENTS),
    "promise": set(Promise),
    "kind": set(KINDS),
    "status": set(Status),
}


async def told():
    """Every metric of a proxy whose server has served, failed, said nonsense and died: its labels."""
    async with Bridge([echo("files")]) as bridge:
        async with bridge.session("files") as client:
            await client.text("echo", text="x")
            await client.call("noise")
            assert code_of(await client.call("crash")) == "server_crashed"
            await client.text("echo", text="again")
        found = {}
        for name, labels in await bridge.metrics():
            found.setdefault(name, set()).update(label for label, _ in labels)
        return found | of_units()


def of_units():
    """What only a proxy tells whose servers are units: tests/sandbox reads it from a real one."""
    units = UnitFamilies(0)
    events = dict.fromkeys(EVENTS, 0)
    units.add(spec_of("files"), Usage(1, 1, 1, events, 1, 1, 1.0, 1.0))
    host = HostFamilies({Promise.MEMORY: Kept(kept=True)})
    tls = TlsFamilies(Tls(Path("/dev/null"), Path("/dev/null")))
    disk = DiskFamilies(Disk(1.0, {"files": {"state": 1}}), ["files"])
    egress = EgressFamilies({"files": Counts(1, Counter(not_listed=1), 1)})
    return {
        sample.name: set(sample.labels)
        for family in (units, host, tls, disk, egress)
        for metric in family.collect()
        for sample in metric.samples
    }


def asked():
    return [rule["expr"] for rule in rules()] + dashboard_expressions()


async def test_every_metric_and_label_that_is_asked_for_is_told_by_a_running_proxy():
    found = await told()
    recorded = {name: found[f"mcp_bridge_{name.split(':')[1]}_total"] for name in records()}
    known = {**found, **recorded, "up": set()}

    unknown = [
        (name, label)
        for expression in asked()
        for name, wanted in selectors(expression)
        for label in (wanted or {"": []})
        if name not in known or not {label} <= known[name] | SCRAPED | {""}
    ]
    assert unknown == []
    labels = set().union(*known.values()) | SCRAPED
    assert {label for text in asked() for label in grouped(text)} <= labels
    assert {name for text in asked() for name, _ in selectors(text)} >= set(found)


def grouped(expression):
    return [
        x.strip() for by in re.findall(r"(?:by|on) \(([^)]*)\)", expression) for x in by.split(",")
    ]


def test_every_value_that_a_label_is_asked_for_exists():
    wrong = [
        (label, value)
        for expression in asked()
        for _, wanted in selectors(expression)
        for label, values in wanted.items()
        for value in values
        if label in WORDS and value not in WORDS[label]
    ]

    assert wrong == []


def test_promtool_understands_every_query_of_the_dashboard(need, tmp_path):
    queries = dashboard_expressions()
    group = [{"record": f"panel:{n}", "expr": text} for n, text in enumerate(queries)]
    path = tmp_path / "panels.yml"
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": group}]}), encoding="utf-8")

    assert f"{len(queries)} rules found" in run(need("promtool"), "check", "rules", path)


def test_the_dashboard_is_whole():
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    text = json.dumps(board)
    numbers = [panel["id"] for panel in panels()]

    assert len(numbers) == len(set(numbers)) > 10
    assert all(panel["title"] and panel["targets"] for panel in panels())
    assert {entry["name"] for entry in board["templating"]["list"]} == {
        *("datasource", "host", "server")
    }
    named = {
        word for word in text.replace('"', " ").replace(".", " ").split() if "McpBridge" in word
    }
    assert named <= set(alerts())


@pytest.mark.parametrize("expression", ['mcp_bridge_nothing{server="x"}', "rate(mcp_bridge:x[5m])"])
def test_a_name_is_found_wherever_it_stands(expression):
    assert [name for name, _ in selectors(f"sum({expression}) > 0")] != []
