"""The base root file systems: made once by mmdebstrap, then only read."""

import shutil
from pathlib import Path

from lab import recipe
from lab.commands import PLAIN, locked, tool
from lab.problems import LabError

# About 50 s alone; a slow mirror or a busy machine may need many times that.
BUILD_TIMEOUT = 900.0


def base(cache: Path, suite: str) -> Path:
    """Return the suite's base, which is made if it is not there.

    Raises:
        LabError: there is no such suite, or mmdebstrap could not make it.
        LabTimeoutError: it took too long, here or in another process.
    """
    if suite not in recipe.SUITES:
        raise LabError(f"no suite {suite}: {', '.join(recipe.SUITES)}")
    wanted = cache / "bases" / recipe.base_name(suite)
    if wanted.exists():
        return wanted
    with locked(cache / "bases" / f"{suite}.lock", within=2 * BUILD_TIMEOUT):
        if not wanted.exists():
            _build(suite, wanted)
    return wanted


def _build(suite: str, wanted: Path) -> None:
    # Only a complete base ever has its name; what a killed run left is of no use.
    partial = wanted.with_name(wanted.name + ".partial")
    _remove(partial)
    try:
        include = f"--include={','.join(recipe.PACKAGES)}"
        built = tool(
            "mmdebstrap", *recipe.OPTIONS, include, suite, partial, timeout=BUILD_TIMEOUT, env=PLAIN
        )
        built.checked()
        tool("systemctl", f"--root={partial}", "disable", *recipe.DISABLED)
        for pattern in recipe.REMOVED:
            for path in partial.glob(pattern):
                path.unlink()
        for name, text in recipe.FILES.items():
            path = partial / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        partial.rename(wanted)
    finally:
        _remove(partial)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
