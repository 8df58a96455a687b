"""What a unit's cgroup tells of its use and its limits; read by anybody, both hierarchies.

cgroups(7); Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/ of the kernel. The files stay
readable below ProtectControlGroups=. Everything here blocks, briefly: they are the kernel's memory.
"""

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
UNLIMITED = -1
# Without a limit v1 tells the largest number of whole pages in 63 bits (page_counter.h).
_NO_LIMIT = 1 << 62
_PAGE = os.sysconf("SC_PAGE_SIZE")
# The events of memory.events(v2) that are told, and what v1 has of them.
EVENTS = ("high", "max", "oom", "oom_kill")


@dataclass(frozen=True, slots=True)
class Usage:
    """One unit's; None for what this host does not tell, UNLIMITED where there is no limit.

    Attributes:
        memory, memory_high, memory_max: bytes.
        memory_events: how often, since the unit started.
        tasks, tasks_max: processes and threads.
        cpu, throttled: seconds since the unit started; waited for CPUQuota=.
        errors: files that are there and could not be read.
    """

    memory: int | None = None
    memory_high: int | None = None
    memory_max: int | None = None
    memory_events: Mapping[str, int] = field(default_factory=dict)
    tasks: int | None = None
    tasks_max: int | None = None
    cpu: float | None = None
    throttled: float | None = None
    errors: int = 0

    def differs(self, memory: int, memory_high: int | None) -> bool:
        """Whether its memory limits are others than these: a drop-in, or a kernel without them."""
        told = [(self.memory_max, memory)]
        if self.memory_high is not None:  # v1 has none
            told.append((self.memory_high, UNLIMITED if memory_high is None else memory_high))
        # The kernel counts whole pages.
        return any(now is not None and now // _PAGE != want // _PAGE for now, want in told)


class Cgroups:
    """The tree below one root."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        # In a hybrid tree the controllers are v1's; the file is the unified root's alone.
        self.unified = (root / "cgroup.controllers").exists()

    def read(self, group: str) -> Usage | None:
        """What the group's files tell; None if there is no such group, or no controller has it.

        Args:
            group: as systemd's ControlGroup= says it, with a slash first.
        """
        files = _Files(self._root, group, unified=self.unified)
        found = _unified(files) if self.unified else _legacy(files)
        return found if files.found or files.errors else None


class _Files:
    """Reads one group's files, and counts what is there and cannot be read."""

    def __init__(self, root: Path, group: str, *, unified: bool) -> None:
        self._root, self._group, self._unified = root, group.lstrip("/"), unified
        self.errors = self.found = 0

    def _text(self, controller: str, name: str) -> str | None:
        tree = self._root if self._unified else self._root / controller
        try:
            text = (tree / self._group / name).read_text(encoding="ascii")
        except OSError as error:
            # Not there, or a group that has just ended.
            self.errors += error.errno not in (errno.ENOENT, errno.ENODEV)
            return None
        self.found += 1
        return text

    def number(self, controller: str, name: str) -> int | None:
        text = self._text(controller, name)
        if text is None:
            return None
        if text.strip() == "max":
            return UNLIMITED
        try:
            value = int(text)
        except ValueError:
            self.errors += 1
            return None
        return UNLIMITED if value >= _NO_LIMIT else value

    def pairs(self, controller: str, name: str) -> dict[str, int]:
        text = self._text(controller, name)
        try:
            lines = (line.split() for line in (text or "").splitlines())
            return {key: int(value) for key, value in lines}
        except ValueError:
            self.errors += 1
            return {}


def _unified(files: _Files) -> Usage:
    events, cpu = files.pairs("", "memory.events"), files.pairs("", "cpu.stat")
    return Usage(
        memory=files.number("", "memory.current"),
        memory_high=files.number("", "memory.high"),
        memory_max=files.number("", "memory.max"),
        memory_events={name: events[name] for name in EVENTS if name in events},
        tasks=files.number("", "pids.current"),
        tasks_max=files.number("", "pids.max"),
        cpu=_seconds(cpu.get("usage_usec"), 1e6),
        throttled=_seconds(cpu.get("throttled_usec"), 1e6),
        errors=files.errors,
    )


def _legacy(files: _Files) -> Usage:
    control = files.pairs("memory", "memory.oom_control")
    events = {"max": files.number("memory", "memory.failcnt"), "oom_kill": control.get("oom_kill")}
    cpu = files.pairs("cpu", "cpu.stat")
    nanoseconds = files.number("cpuacct", "cpuacct.usage")
    if nanoseconds is None:
        # Where cpuacct is mounted apart from cpu, systemd leaves it alone. The unified tree beside
        # v1's controllers counts, too, and without a controller of its own.
        microseconds = files.pairs("unified", "cpu.stat").get("usage_usec")
        nanoseconds = None if microseconds is None else microseconds * 1000
    return Usage(
        memory=files.number("memory", "memory.usage_in_bytes"),
        memory_max=files.number("memory", "memory.limit_in_bytes"),
        memory_events={name: value for name, value in events.items() if value is not None},
        tasks=files.number("pids", "pids.current"),
        tasks_max=files.number("pids", "pids.max"),
        cpu=_seconds(nanoseconds, 1e9),
        throttled=_seconds(cpu.get("throttled_time"), 1e9),
        errors=files.errors,
    )


def _seconds(value: int | None, unit: float) -> float | None:
    return None if value is None else value / unit
