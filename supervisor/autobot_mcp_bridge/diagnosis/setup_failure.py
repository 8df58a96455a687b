"""Which step of a unit's set-up failed, in systemd's own words: its lines in the journal.

The record of last words is not enough: where a directory is missing, the program that writes it
cannot be started either.
"""

import re
import subprocess

from autobot_mcp_bridge.diagnosis.original import Original

JOURNAL_WITHIN = 5.0
MOST_LINES = 50
_STEP = re.compile(r"Failed at step (\w+)")
_WHY = re.compile(r"(?i)failed: |failed to (?!start\b)|: No such file")
# What of the unit a step is about (systemd.exec(5), "Process Exit Codes").
_ABOUT = {"CHDIR": "WorkingDirectory", "USER": "User", "GROUP": "SupplementaryGroups"}


def failed_step(original: Original, unit: str) -> str:
    """One clause, such as `step CHDIR, ...`; "" where the journal tells nothing. Blocks."""
    lines = [line.removeprefix(f"{unit}: ") for line in _journal(unit)]
    steps = [match[1] for line in lines if (match := _STEP.search(line))]
    if not steps:
        return ""
    why = [line for line in lines if _WHY.search(line) and not _STEP.search(line)]
    about = original.values(_ABOUT.get(steps[-1], ""))
    clauses = [f"step {steps[-1]}", *why[-1:]]
    clauses += [f"{_ABOUT[steps[-1]]}={about[-1]}"] if about else []
    return ", ".join(clauses)


def _journal(unit: str) -> list[str]:
    """The lines about the unit; nothing of the server's own has run that could write any."""
    words = ["journalctl", "--quiet", "--no-pager", "--output=cat", f"--lines={MOST_LINES}"]
    try:
        subprocess.run(
            ["journalctl", "--sync"], stdin=subprocess.DEVNULL, timeout=JOURNAL_WITHIN, check=False
        )
        done = subprocess.run(
            [*words, f"UNIT={unit}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=JOURNAL_WITHIN,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.decode("utf-8", "replace").splitlines()
