"""Whether there can be a lab on this machine: asked by trying, wherever a look does not tell."""

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from lab import cgroups
from lab.commands import PLAIN, tool
from lab.places import PREFIX
from lab.problems import LabError

PROGRAMS = ("mmdebstrap", "systemd-nspawn", "ip", "nsenter", "unshare", "setpriv")
INSTANCES = 1024
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
_MOUNT = "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work root"


def unavailable(cache: Path) -> str | None:
    """Return why there can be no lab with this cache; None if nothing is known against it."""
    if sys.platform != "linux":
        return "not Linux"
    if os.geteuid() != 0:
        return "not root"
    for program in PROGRAMS:
        if shutil.which(program, path=PLAIN["PATH"]) is None:
            return f"the program {program} is not installed"
    if absent := cgroups.missing():
        return f"not mounted as cgroup hierarchies of their own: {', '.join(absent)}"
    try:
        _try_cgroups()
        _try_overlay(cache)
    except (LabError, OSError) as error:
        return " ".join(str(error).split())
    return None


def make_room() -> None:
    """Raise this machine's bound on inotify instances, where that may be, until it is turned off.

    All containers are one user's to the kernel. With the usual 128 some ten of them use them up, and
    path units in them fail for want of resources (measured).
    """
    with suppress(OSError):
        if int(_INOTIFY.read_text(encoding="ascii")) < INSTANCES:
            _INOTIFY.write_text(str(INSTANCES), encoding="ascii")


def _try_cgroups() -> None:
    name = f"{PREFIX}try-{os.getpid()}"
    try:
        cgroups.make(name)
    finally:
        cgroups.remove(name)


def _try_overlay(cache: Path) -> None:
    # Refused without CAP_SYS_ADMIN, and where the cache itself lies on an overlay.
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        for layer in ("lower", "upper", "work", "root"):
            (Path(folder) / layer).mkdir()
        # The mount is in no other namespace and ends with this one.
        alone = ("unshare", "--mount", "--propagation", "private")
        tool(*alone, "sh", "-c", f'cd "$0" && {_MOUNT}', folder).checked()
