"""What running servers use: of their units, or of their main processes where there are none."""

import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.supervision.cgroups import Cgroups
from autobot_mcp_bridge.units.instances import SLICE, service_of

TIMEOUT = 10.0  # of one systemctl show; 500 units take 0.2 s
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes, and seconds of CPU since the start; None where it is not known."""

    memory: int | None = None
    cpu: float | None = None


def usage_of(rows: Iterable[Mapping[str, Any]], runtime: str) -> dict[str, Usage]:
    """By instance, for the rows of /status that have a process."""
    running = {str(row["instance"]): int(row["pid"]) for row in rows if row.get("pid")}
    if runtime == "systemd":
        return _of_units(running)
    return {instance: _of_process(pid) for instance, pid in running.items()}


def _of_units(running: Iterable[str]) -> dict[str, Usage]:
    """From their cgroups, as the proxy does, and by systemctl where an administrator has moved them.

    systemd itself tells no processor time where v1 mounts cpuacct apart from cpu.
    """
    cgroups, found, moved = Cgroups(), {}, []
    for name in sorted(running):
        used = cgroups.read(f"/{SLICE}/{service_of(name)}")
        if used is None:
            moved.append(name)
        else:
            found[name] = Usage(used.memory, used.cpu)
    return {**found, **_asked(moved)}


def _asked(names: list[str]) -> dict[str, Usage]:
    if not names:
        return {}
    units = [service_of(name) for name in names]
    command = ["systemctl", "show", "--property=MemoryCurrent,CPUUsageNSec", "--", *units]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    blocks = done.stdout.decode("utf-8", "replace").split("\n\n")
    return {name: _parsed(block) for name, block in zip(names, blocks, strict=False)}


def _parsed(block: str) -> Usage:
    found = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
    memory, cpu = found.get("MemoryCurrent", ""), found.get("CPUUsageNSec", "")
    # A property without a value is `[not set]`, or the largest number of 64 bits.
    known = {text: int(text) for text in (memory, cpu) if text.isdecimal() and int(text) < 1 << 62}
    nanoseconds = known.get(cpu)
    return Usage(known.get(memory), None if nanoseconds is None else nanoseconds / 1e9)


def _of_process(pid: int) -> Usage:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (OSError, IndexError, ValueError):
        return Usage()
    fields = stat.rpartition(")")[2].split()
    return Usage(pages * _PAGE, (int(fields[11]) + int(fields[12])) / _TICKS)
