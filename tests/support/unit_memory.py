"""What the processes of a unit hold in memory, as its cgroup counts it."""

from pathlib import Path

from lab import cgroups
from lab.containers import Container
from support.containers import properties


def folder(container: Container, unit: str) -> Path:
    """The unit's cgroup of the memory controller, as seen from here; it runs."""
    group = properties(container, unit, "ControlGroup")["ControlGroup"]
    state = container.state()
    assert state is not None, f"{container} is not up"
    assert group, f"{unit} does not run"
    return cgroups.roots(state.leader)["memory"] / group.lstrip("/")


def held(folder: Path) -> int:
    """Bytes of anonymous and shared memory: no page cache, which goes when memory is short."""
    lines = (folder / "memory.stat").read_text(encoding="utf-8").splitlines()
    stat = dict(line.split() for line in lines)
    return int(stat["total_rss"]) + int(stat["total_shmem"])


def processes(folder: Path) -> list[int]:
    """Their numbers here, outside."""
    return [*map(int, (folder / "cgroup.procs").read_text(encoding="utf-8").split())]
