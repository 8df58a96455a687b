"""The wheels that dist/requirements.txt names, for the Python of each suite, kept in the cache."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from clients.setup import cache_dir
from lab.commands import locked
from rules.tree import ROOT

DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.13")  # of Debian 12 and 13
TIMEOUT = 900.0  # seconds; a slow mirror has to give twenty wheels for each


def wheels() -> Path:
    """The directory; they are downloaded where it is not there.

    Raises:
        OSError: there is no dist/: make it with `make dist`.
        subprocess.SubprocessError: pip could not get them.
    """
    requirements = DIST / "requirements.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    wanted = cache_dir() / f"wheels-{digest}"
    with locked(wanted.with_suffix(".lock"), within=TIMEOUT):
        if not wanted.exists():
            draft = wanted.with_suffix(".new")
            shutil.rmtree(draft, ignore_errors=True)  # of a run that was cut off
            for python in PYTHONS:
                _download(requirements, python, draft)
            draft.rename(wanted)
    return wanted


def _download(requirements: Path, python: str, folder: Path) -> None:
    words = [sys.executable, "-m", "pip", "download", "-qqq", "--disable-pip-version-check"]
    words += ["--only-binary=:all:", "--python-version", python, "--require-hashes"]
    words += ["--requirement", str(requirements), "--dest", str(folder)]
    subprocess.run(words, stdin=subprocess.DEVNULL, check=True, timeout=TIMEOUT)
