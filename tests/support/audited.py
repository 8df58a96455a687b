"""The records that a proxy of the tests has written."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.policy.audit.files import files
from autobot_mcp_bridge.policy.audit.outcome import OF_CALLS
from support.bridge import Bridge
from support.waiting import eventually


def directory(bridge: Bridge) -> Path:
    return bridge.state_dir / "audit.d"


def everything(bridge: Bridge) -> list[dict[str, Any]]:
    """Every line, oldest first."""
    found: list[dict[str, Any]] = []
    for path in files(directory(bridge)):
        found += map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return found


def calls(bridge: Bridge, **fields: Any) -> list[dict[str, Any]]:
    """The lines of calls that say this."""
    lines = [line for line in everything(bridge) if line["event"] in OF_CALLS]
    return [line for line in lines if all(line[name] == fields[name] for name in fields)]


async def recorded(bridge: Bridge, number: int, **fields: Any) -> list[dict[str, Any]]:
    """So many lines that say this, once they are written.

    Raises:
        AssertionError: there are fewer, or more.
    """
    await eventually(lambda: len(calls(bridge, **fields)) >= number, what=f"{number} of {fields}")
    found = calls(bridge, **fields)
    assert len(found) == number, found
    return found


def audit(bridge: Bridge, *words: str) -> subprocess.CompletedProcess[str]:
    """`mcp-bridge audit …` on this proxy's files."""
    command = [sys.executable, "-m", "autobot_mcp_bridge.cli.main", *bridge.options, "audit"]
    return subprocess.run(
        [*command, *words], capture_output=True, text=True, check=False, timeout=60
    )


def verified(bridge: Bridge) -> dict[str, Any]:
    """What `audit verify --json` says."""
    found: dict[str, Any] = json.loads(audit(bridge, "verify", "--json").stdout)
    return found
