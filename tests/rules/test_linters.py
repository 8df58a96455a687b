"""The linters run as tests: one command, one report, the same for people and machines."""

import subprocess
import sys

import pytest

from rules.tree import ROOT


@pytest.mark.parametrize(
    "words",
    [
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        ("mypy",),
    ],
    ids=" ".join,
)
def test_a_linter_has_nothing_to_say(words):
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
