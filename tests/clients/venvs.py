"""The clients from PyPI that do not fit beside the tests' own packages, each in a venv of its own.

A file beside this one lists what goes into each, exactly; its digest is part of the venv's name.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from clients.setup import DONE, HERE, INSTALL_TIMEOUT, CannotInstallError, cache_dir

_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")


def home(name: str) -> Path:
    """Return where the client's venv is, or will be, for this Python."""
    digest = hashlib.sha256(listed(name).read_bytes()).hexdigest()
    return cache_dir() / f"client-{name}-{digest[:12]}-{sys.implementation.cache_tag}"


def listed(name: str) -> Path:
    return HERE / f"{name}.txt"


def install(name: str) -> Path:
    """Install the client unless it is there; return its venv.

    Raises:
        CannotInstallError: the venv cannot be made, or pip failed.
    """
    target = home(name)
    target.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / DONE).exists():
            shutil.rmtree(target)  # what a run that was killed has left
            _run(sys.executable, "-m", "venv", str(target))
            _run(str(target / "bin" / "python"), *_PIP, "--requirement", str(listed(name)))
            (target / DONE).touch()
    return target


def _run(*words: str) -> None:
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            env=dict(os.environ),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=INSTALL_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotInstallError(f"pip took longer than {INSTALL_TIMEOUT:.0f} s") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise CannotInstallError("; ".join(lines[-3:]))
