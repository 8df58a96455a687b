"""Playbooks of the checkout, run by the real Ansible against hosts of a lab."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.containers import Container
from lab.places import Lab
from rollout import hosts
from rules.tree import ROOT
from support.waiting import PATIENCE

BIN = ROOT / ".venv-ansible" / "bin"
# Seconds for one playbook, only to end one that hangs: the longest needs about 40 on two idle cores,
# and took 300 on two that others were using, too.
TIMEOUT = 900.0 * PATIENCE
_RECAP = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a playbook has said.

    Attributes:
        changed: host to how many tasks have changed something, or would.
    """

    status: int
    output: str
    changed: Mapping[str, int]

    def checked(self) -> "Run":
        assert self.status == 0, self.output
        return self


@dataclass(frozen=True, slots=True)
class Rollout:
    """The hosts of one lab as an inventory.

    Attributes:
        folder: a test's own, for the inventory.
        suites: host to its suite.
        own: host to variables of its own.
    """

    lab: Lab
    folder: Path
    suites: Mapping[str, str]
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def up(self) -> list[Container]:
        return [hosts.up(self.lab, name, suite) for name, suite in self.suites.items()]

    def run(self, playbook: str, *words: str, **variables: Any) -> Run:
        """Run a playbook of playbooks/ with these variables for every host."""
        inventory = self.folder / "hosts.json"
        group = {"hosts": {name: self.own.get(name, {}) for name in self.suites}, "vars": variables}
        inventory.write_text(json.dumps({"mcp_hosts": group}), encoding="utf-8")
        connection = ROOT / "molecule" / "shared" / "inventory" / "connection.yml"
        where = ("--inventory", str(connection), "--inventory", str(inventory))
        return ansible("ansible-playbook", *where, f"playbooks/{playbook}", *words, lab=self.lab)


def ansible(program: str, *words: str, lab: Lab | None = None, **variables: str) -> Run:
    """Run one of Ansible's programs in the checkout, with these variables of the environment."""
    done = subprocess.run(
        [str(BIN / program), *words],
        cwd=ROOT,
        env={**environment(), **(hosts.variables(lab) if lab else {}), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        check=False,
    )
    changed = {name: int(count) for name, count in _RECAP.findall(done.stdout)}
    return Run(done.returncode, done.stdout, changed)


def environment() -> dict[str, str]:
    """The caller's, with Ansible's own programs first and what molecule's base file sets, too."""
    return {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "ANSIBLE_ROLES_PATH": str(ROOT / "roles"),
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_INJECT_FACT_VARS": "false",
        "ANSIBLE_NOCOLOR": "true",
    }
