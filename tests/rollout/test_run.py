"""`make run`: what its environment holds, and what it leaves alone."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEPENDENCIES = (
    "import sys; sys.path.insert(0, 'tools'); import run, venv_tools; "
    "print(*venv_tools._dependencies(run.SERVING), sep='\\n')"
)


def said(tmp_path, *words):
    names = {f"MCP_BRIDGE_{name}_DIR": str(tmp_path / name) for name in ("STATE", "CONFIG")}
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, **names},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def test_its_environment_reads_the_files_of_every_client_that_import_names(tmp_path):
    found = said(tmp_path, "-c", DEPENDENCIES).split("\n")

    assert any(each.startswith("aiohttp") for each in found)
    assert any(each.startswith("pyyaml") for each in found)


def test_asking_for_help_makes_nothing(tmp_path):
    assert "mcp-bridge serve" in said(tmp_path, "tools/run.py", "--help")
    assert list(tmp_path.iterdir()) == []
