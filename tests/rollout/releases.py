"""Releases that differ from the checkout's dist/: the same wheel with a change in its code.

python tests/rollout/releases.py FOLDER FILE OLD NEW
"""

import shutil
import sys
import zipfile
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from rollout.wheels import DIST

PACKAGE = "autobot_mcp_bridge"


def release(folder: Path, file: str, old: str, new: str) -> Path:
    """A directory for `mcp_bridge_host_dist`, in whose wheel `old` of a file of the package is `new`.

    Raises:
        AssertionError: the file does not hold it exactly once.
    """
    folder.mkdir()
    shutil.copy2(DIST / "requirements.txt", folder)
    (wheel,) = DIST.glob("*.whl")
    with zipfile.ZipFile(wheel) as before, zipfile.ZipFile(folder / wheel.name, "w") as after:
        for entry in before.infolist():
            data = before.read(entry)
            if entry.filename == f"{PACKAGE}/{file}":
                assert data.count(old.encode()) == 1, f"{file}: {old!r}"
                data = data.replace(old.encode(), new.encode())
            after.writestr(entry, data)
    return folder


if __name__ == "__main__":
    release(Path(sys.argv[1]), *sys.argv[2:])
