"""Programs of Debian's packages, unpacked and not installed.

Installing one would start a server on the machine of whoever runs the tests: where the program is
not there, its package is fetched and unpacked in the cache directory.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from clients.setup import cache_dir

# Program: its package, and where it is in there.
PROGRAMS = {
    "promtool": ("prometheus", "usr/bin/promtool"),
    "nginx": ("nginx", "usr/sbin/nginx"),
    "caddy": ("caddy", "usr/bin/caddy"),
}
# Seconds: 25 MB from a mirror, and 100 MB to unpack.
FETCH_TIMEOUT = 300.0


class CannotFetchError(Exception):
    """It cannot be had here; the message says why."""


def program(name: str) -> Path:
    """Return one of PROGRAMS: of PATH, or unpacked; fetched at first.

    Raises:
        CannotFetchError: apt cannot fetch it, or this is no Debian.
    """
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    package, inside = PROGRAMS[name]
    kept = cache_dir() / name / name
    kept.parent.mkdir(parents=True, exist_ok=True)
    with (kept.parent / ".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
                _fetch(Path(folder), package)
                (Path(folder) / inside).rename(kept)
    return kept


def _fetch(folder: Path, package: str) -> None:
    try:
        run(folder, "apt-get", "download", package)
    except CannotFetchError:
        if os.geteuid() != 0:
            raise
        run(folder, "apt-get", "update", "-q")
        run(folder, "apt-get", "download", package)
    (archive,) = folder.glob("*.deb")
    run(folder, "dpkg-deb", "--extract", archive.name, ".")


def run(folder: Path, *words: str) -> None:
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=FETCH_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotFetchError(f"{words[0]}: {error}") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no word of why"])[-1]
        raise CannotFetchError(f"{' '.join(words)}: {last}")
