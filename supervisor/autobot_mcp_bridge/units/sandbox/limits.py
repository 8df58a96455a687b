"""Limits that count for running units too: daemon-reload alone may leave their cgroups as they are."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from autobot_mcp_bridge.units.systemctl import run_tool

# What a drop-in sets of systemd.resource-control(5); none of it needs another process.
LIVE = ("MemoryMax", "MemoryHigh", "CPUQuota", "CPUWeight", "IOWeight", "TasksMax")
# One of each controller: set to what it is already, it has systemd write all that it knows for that
# controller, CPUQuota= beside CPUWeight= and MemoryHigh= beside MemoryMax= (252 and 257, measured).
# So what counts is what systemd has read, administrators' drop-ins and what is set no more included.
APPLIED_BY = ("MemoryMax", "CPUWeight", "IOWeight", "TasksMax")
NOT_SET = "[not set]"
# Where `set-property --runtime` leaves drop-ins, which would count more than ours from then on.
CONTROL = Path("/run/systemd/system.control")


def limits_of(drop_in: str) -> dict[str, str]:
    """The live limits that a drop-in sets."""
    pairs = (line.partition("=") for line in drop_in.splitlines())
    return {key: value for key, _, value in pairs if key in LIVE}


def running(services: Iterable[str]) -> list[str]:
    """Those of the services that run.

    Raises:
        SystemctlError: systemd cannot be asked.
    """
    pattern = "autobot-mcp-bridge@*.service"
    shown = run_tool("systemctl", "list-units", "--plain", "--no-legend", "--state=active", pattern)
    active = {line.split()[0] for line in shown.splitlines() if line.strip()}
    return sorted(active.intersection(services))


def change(services: Iterable[str]) -> None:
    """Have the limits that systemd has read for these services count, where they run; 50 ms each.

    Raises:
        SystemctlError: systemd refused one; those before have theirs.
    """
    wanted = set(services)
    for service in running(wanted) if wanted else ():
        shown = run_tool("systemctl", "show", f"--property={','.join(APPLIED_BY)}", service)
        words = [line.removesuffix(NOT_SET) for line in shown.splitlines() if line]
        run_tool("systemctl", "set-property", "--runtime", service, *words)
        shutil.rmtree(CONTROL / f"{service}.d", ignore_errors=True)
