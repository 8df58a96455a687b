"""promtool, which Debian has in the package of the Prometheus server.

Installing that would start a server on the machine of whoever runs the tests: where promtool is
not there, the package is fetched and unpacked in the cache directory.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from clients.setup import cache_dir

PACKAGE = "prometheus"
# Seconds: 25 MB from a mirror, and 100 MB to unpack.
FETCH_TIMEOUT = 300.0


class CannotFetchError(Exception):
    """It cannot be had here; the message says why."""


def promtool() -> Path:
    """Return promtool: of PATH, or unpacked; fetched at first.

    Raises:
        CannotFetchError: apt cannot fetch it, or this is no Debian.
    """
    found = shutil.which("promtool")
    if found is not None:
        return Path(found)
    kept = cache_dir() / "promtool" / "promtool"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            _fetch(Path(folder))
            (Path(folder) / "usr" / "bin" / "promtool").rename(kept)
    return kept


def _fetch(folder: Path) -> None:
    try:
        run(folder, "apt-get", "download", PACKAGE)
    except CannotFetchError:
        if os.geteuid() != 0:
            raise
        run(folder, "apt-get", "update", "-q")
        run(folder, "apt-get", "download", PACKAGE)
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
