"""Make .venv-ansible with Ansible, molecule and their linters, from Python 3.12 or newer.

The current major of ansible-core needs it. Where there is only an older Python, the newest
ansible-core that it can run is taken, and said.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from venv_tools import ROOT, SetupError, Wanted, make

FOLDER = ROOT / ".venv-ansible"
NEEDED = (3, 12)
NEWEST_FIRST = ("python3.14", "python3.13", "python3.12")
ASK_TIMEOUT = 30.0  # seconds for a Python to tell its version
_ASK = "import sys, ensurepip; print(*sys.version_info[:2])"


def main() -> int:
    base = next(pythons(), None)
    if base is None:
        base = Path(sys.executable)
        print(
            f"there is no Python {'.'.join(map(str, NEEDED))} on this machine: an older "
            f"ansible-core is taken, the newest that {base} can run",
            flush=True,
        )
    try:
        make(FOLDER, base.resolve(), Wanted(groups=("ansible",)))
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def pythons() -> Iterator[Path]:
    """Every Python of this machine that is new enough, those of pyenv included."""
    for name in (sys.executable, *NEWEST_FIRST):
        found = shutil.which(name)
        if found is not None and _is_new_enough(Path(found)):
            yield Path(found)
    # Its shims on PATH run only the versions that it is set to.
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for path in sorted(root.glob("versions/3.*/bin/python3"), reverse=True):
        if _is_new_enough(path):
            yield path


def _is_new_enough(python: Path) -> bool:
    try:
        done = subprocess.run(
            [python, "-I", "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=ASK_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    major, minor = done.stdout.split()
    return (int(major), int(minor)) >= NEEDED


if __name__ == "__main__":
    sys.exit(main())
