"""The man pages and completions of an installed program: made once in its venv, laid from there."""

import os
import shutil
import subprocess
from pathlib import Path

from autobot_mcp_bridge.units.host import place, static
from autobot_mcp_bridge.units.packages.job import InstallError

_MADE = "pages"
_SECONDS = 120.0  # a second, on a host that is not busy
_SHARE = "usr/share"


def made(root: Path) -> dict[str, Path]:
    """Have the installed program write its pages; place below the root to the file with the text.

    Raises:
        InstallError: the program cannot.
    """
    venv = (root / place.PROGRAM).resolve()
    folder = venv / _MADE
    if not folder.is_dir():
        draft = venv / f".{_MADE}.new"
        shutil.rmtree(draft, ignore_errors=True)  # of a run that was cut off
        _run(venv / "bin/python", draft)
        for path in (draft, *draft.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        draft.rename(folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"{_SHARE}/{file.relative_to(folder)}": file for file in files}


def laid(root: Path) -> list[str]:
    """Those that lie below the root, of whichever version."""
    found = [path for pattern in static.PAGES for path in root.glob(pattern)]
    return sorted(str(path.relative_to(root)) for path in found)


def remove_directories(root: Path) -> None:
    """Remove those directories of shells that nobody has anything in."""
    for name in static.PAGE_DIRECTORIES:
        directory = root / name
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()


def _run(python: Path, folder: Path) -> None:
    words = [str(python), "-m", "autobot_mcp_bridge.cli.main", "pages", str(folder)]
    try:
        subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
            text=True,
            encoding="utf-8",
            timeout=_SECONDS,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise InstallError(f"the program cannot write its man pages: {last}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(f"the program cannot write its man pages: {error}") from error
