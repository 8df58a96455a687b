"""A container's own folder in every cgroup hierarchy of the host.

nspawn mounts the v1 controllers read-only, unless something is mounted on a controller's place
already. So each gets the container's folder there, read-write: then systemd inside enforces its
limits from the first moment on, and containers share nothing.
"""

import os
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

from lab.problems import LabError
from support import proc
from support.waiting import until

ROOT = Path("/sys/fs/cgroup")
# Where systemd keeps its own tree on a host with v1 controllers; they limit nothing.
TREES = ("systemd", "unified")
NEEDED = ("memory", "pids", "cpu")
# The processes of a killed container and the folders' last references are gone in milliseconds.
GONE_WITHIN = 10.0


def controllers() -> list[str]:
    """Return the v1 controllers that are mounted on a folder of their own name."""
    lines = Path("/proc/cgroups").read_text(encoding="utf-8").splitlines()
    names = (line.split()[0] for line in lines if not line.startswith("#"))
    return [name for name in names if (ROOT / name / "cgroup.procs").exists()]


def missing() -> list[str]:
    present = [*controllers(), *(tree for tree in TREES if (ROOT / tree / "cgroup.procs").exists())]
    return [name for name in (*NEEDED, *TREES) if name not in present]


def folders(name: str) -> list[Path]:
    return [ROOT / part / name for part in (*controllers(), *TREES)]


def make(name: str) -> None:
    for folder in folders(name):
        folder.mkdir(exist_ok=True)
    cpuset = ROOT / "cpuset"
    for item in ("cpuset.cpus", "cpuset.mems"):  # no process may enter before they are set
        if (cpuset / name).exists():
            (cpuset / name / item).write_bytes((cpuset / item).read_bytes())


def binds(name: str) -> list[str]:
    """Return nspawn's options for the hierarchies; the trees it mounts by itself."""
    own = [f"--bind={ROOT / part / name}:{ROOT / part}" for part in controllers()]
    return [f"--tmpfs={ROOT}:mode=755", *own]


def entrances(name: str) -> list[str]:
    """Return the files that a process writes its id to in order to be in all of them."""
    return [str(folder / "cgroup.procs") for folder in folders(name)]


def roots(leader: int) -> dict[str, Path]:
    """Return what the container sees as the root of each hierarchy, given its first process.

    In the trees that is a folder below the container's own, which nspawn makes.
    """
    found = {}
    for line in Path(f"/proc/{leader}/cgroup").read_text(encoding="utf-8").splitlines():
        _, name, path = line.split(":", 2)
        part = name.removeprefix("name=") or "unified"
        if part in (*controllers(), *TREES):
            found[part] = ROOT / part / path.removesuffix("/init.scope").lstrip("/")
    return found


def pids(folder: Path) -> set[int]:
    """Return the processes of a folder and of those below it, as far as they are still there."""
    found: set[int] = set()
    for path, _, _ in os.walk(folder):
        with suppress(OSError):
            words = Path(path, "cgroup.procs").read_text(encoding="utf-8").split()
            found.update(int(word) for word in words)
    return found


def end_all(folder: Path) -> None:
    """Kill what runs in a folder and wait until it is gone.

    Raises:
        LabError: something is still there.
    """

    def empty() -> bool:
        for pid in pids(folder) - {0}:
            proc.end(pid, signal.SIGKILL, within=GONE_WITHIN)
        return not pids(folder)

    if not until(empty, within=GONE_WITHIN):
        raise LabError(f"processes {sorted(pids(folder))} of {folder} do not end")


def remove(name: str) -> None:
    """Take away every folder of a container, with the processes that are still in one.

    Raises:
        LabError: the kernel did not let go of one of them.
    """
    for folder in folders(name):
        if folder.exists():
            end_all(folder)
            if not until(partial(_removed, folder), within=GONE_WITHIN):
                raise LabError(f"{folder} cannot be removed")


def _removed(folder: Path) -> bool:
    # The files in a cgroup's folder are not files to be removed: only rmdir, the deepest first.
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            Path(path).rmdir()
    return not folder.exists()
