"""Limits that count for running units too: daemon-reload alone leaves their cgroups as they are."""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from autobot_mcp_bridge.units.systemctl import run_tool

# systemd.resource-control(5), and what the drop-in sets of it.
LIVE = ("MemoryMax", "CPUQuota", "TasksMax")
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


def change(services: Mapping[str, str]) -> None:
    """Set the limits of running services to those of their new drop-ins, 50 ms each.

    Raises:
        SystemctlError: systemd refused one; those before have theirs.
    """
    for service in running(services) if services else ():
        words = [f"{key}={value}" for key, value in limits_of(services[service]).items()]
        run_tool("systemctl", "set-property", "--runtime", service, *words)
        shutil.rmtree(CONTROL / f"{service}.d", ignore_errors=True)
