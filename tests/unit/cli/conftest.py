"""A command line in directories of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autobot_mcp_bridge.cli.main import main
from support.configured import places_in

SECONDS = 120  # for a command in a process of its own, on a busy machine


@pytest.fixture
def places(tmp_path, monkeypatch):
    for name in ("CONFIG_DIR", "STATE_DIR", "RUNTIME_DIR", "TOKEN"):
        monkeypatch.delenv(f"MCP_BRIDGE_{name}", raising=False)
    return places_in(tmp_path)


@pytest.fixture
def options(places):
    return [
        f"--config-dir={places.config_dir}",
        f"--state-dir={places.state_dir}",
        f"--runtime-dir={places.runtime_dir}",
    ]


@pytest.fixture
def run(options, capsys):
    """Run a command in this process: its status, stdout and stderr."""

    def run(*words):
        try:
            status = main([*options, *words])
        except SystemExit as end:  # argparse's way
            status = end.code
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def run_apart():
    """Run a command in a process of its own, with these options for Python."""

    def run(*words, python=()):
        root = Path(__file__).parents[3] / "supervisor"
        return subprocess.run(
            [sys.executable, *python, "-m", "autobot_mcp_bridge.cli.main", *words],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(root), "HOME": "/nonexistent"},
        )

    return run
