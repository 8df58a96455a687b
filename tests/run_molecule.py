"""Run molecule's scenarios in the lab, with a line for each step and the whole in a log.

    python tests/run_molecule.py [SCENARIO]…         all that there are, by default
    python tests/run_molecule.py default -- converge

Ansible wants blocking streams, and the lab's names come from here; so molecule is not run by hand.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from clients.setup import cache_dir
from lab import host
from lab.places import Lab
from rollout import hosts
from rollout.playbooks import BIN, environment
from rules.tree import ROOT

SCENARIOS = ROOT / "molecule"
NOT_RUN = 77  # as in showing.py
LAST_LINES = 60
DEADLINE = 1200.0  # seconds for one scenario, which needs about 150 on two idle cores
DESTROY_WITHIN = 120.0  # seconds to remove the containers of one that was ended
_SHOWN = re.compile(r"INFO\s+\S+ ➜ |^(PLAY|TASK|RUNNING HANDLER) \[|^\S+\s+: ok=\d+")


def main(words: list[str]) -> int:
    names, _, command = " ".join(words).partition("--")
    lab = Lab.of_checkout()
    why = host.unavailable(lab.cache)
    if why is not None or not (BIN / "molecule").exists():
        print(why or "there is no .venv-ansible: make ansible")
        return NOT_RUN
    folder = cache_dir() / "molecule"
    folder.mkdir(parents=True, exist_ok=True)
    chosen = names.split() or sorted(path.parent.name for path in SCENARIOS.glob("*/molecule.yml"))
    statuses = [run(lab, name, command.split() or ["test"], folder) for name in chosen]
    return max(statuses)


def run(lab: Lab, scenario: str, command: Iterable[str], folder: Path) -> int:
    log = folder / f"{scenario}.log"
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        status = _molecule(lab, scenario, command, DEADLINE, file)
        if status < 0:  # a signal, so the containers are still there
            _molecule(lab, scenario, ["destroy"], DESTROY_WITHIN, file)
    if status != 0:
        print(*log.read_text(encoding="utf-8").splitlines()[-LAST_LINES:], sep="\n")
    word = "passed" if status == 0 else f"failed with status {status}"
    print(f"{scenario} {word} after {time.monotonic() - began:.0f} s; log {log}", flush=True)
    return abs(status)


def _molecule(lab: Lab, scenario: str, command: Iterable[str], within: float, log: TextIO) -> int:
    """Run molecule, its output to the log and each step to stdout; negative: the signal it got."""
    began = time.monotonic()
    process = subprocess.Popen(
        [str(BIN / "molecule"), *command, "--scenario-name", scenario],
        cwd=ROOT,
        env={**environment(), **hosts.variables(lab), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,  # so that Ansible's forks and ssh end with it
    )
    assert process.stdout is not None
    late = threading.Timer(within, _end, (process, f"{scenario}: not done after {within:.0f} s"))
    late.daemon = True
    late.start()
    try:
        for line in process.stdout:
            log.write(line)
            if _SHOWN.search(line):
                passed, text = time.monotonic() - began, line.rstrip(" *\n")
                print(f"{passed:5.0f} s  {text}", flush=True)
        return process.wait()
    finally:
        late.cancel()
        process.stdout.close()
        if process.poll() is None:
            _end(process, f"{scenario}: interrupted")
            process.wait()


def _end(process: subprocess.Popen[str], why: str) -> None:
    print(why, flush=True)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
