"""The wheels that dist/requirements.txt names, for the Python of each suite, kept in the cache."""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from clients.setup import cache_dir
from lab.commands import locked
from rules.tree import ROOT

DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.13")  # of Debian 12 and 13
# pip judges a marker by the Python that runs it, whatever --python-version says, and Debian 12 has
# 3.11.2: what is for older ones is downloaded, too.
_FOR_OLDER = re.compile(r" ; python_full_version < '[0-9.]+'")
TIMEOUT = 900.0  # seconds; a slow mirror has to give twenty wheels for each


def wheels() -> Path:
    """The directory; they are downloaded where it is not there.

    Raises:
        OSError: there is no dist/: make it with `make dist`.
        subprocess.SubprocessError: pip could not get them.
    """
    text = (DIST / "requirements.txt").read_text(encoding="utf-8")
    text = _FOR_OLDER.sub("", text)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    wanted = cache_dir() / f"wheels-{digest}"
    with locked(wanted.with_suffix(".lock"), within=TIMEOUT):
        if not wanted.exists():
            draft = wanted.with_suffix(".new")
            shutil.rmtree(draft, ignore_errors=True)  # of a run that was cut off
            with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                for python in PYTHONS:
                    _download(file.name, python, draft)
            draft.rename(wanted)
    return wanted


def _download(requirements: str, python: str, folder: Path) -> None:
    words = [sys.executable, "-m", "pip", "download", "-qqq", "--disable-pip-version-check"]
    words += ["--only-binary=:all:", "--python-version", python, "--require-hashes"]
    words += ["--requirement", requirements, "--dest", str(folder)]
    subprocess.run(words, stdin=subprocess.DEVNULL, check=True, timeout=TIMEOUT)
