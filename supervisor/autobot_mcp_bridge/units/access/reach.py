"""Whether the uid of a server could reach a file, and programs found over a PATH."""

import os
import shutil
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from autobot_mcp_bridge.units.access.root import is_root
from autobot_mcp_bridge.units.packages.job import InstallError

# What a program finds behind the directories of its own package.
SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
_SHEBANG_BYTES = 256


def blocked_at(path: Path) -> Path | None:
    """The first place on the way that a uid without any right of its own cannot pass.

    Walks the path as it is written and what it resolves to; for a script, its interpreter too.
    None: everybody can execute the file.
    """
    for way in dict.fromkeys((path, path.resolve())):
        for directory in reversed(way.parents):
            if not directory.stat().st_mode & stat.S_IXOTH:
                return directory
    mode = path.stat().st_mode
    interpreter = _interpreter(path)
    if not mode & stat.S_IXOTH or (interpreter is not None and not mode & stat.S_IROTH):
        return path
    return blocked_at(interpreter) if interpreter is not None and interpreter.exists() else None


def in_reach(path: Path) -> Path:
    """The same path. As root, servers run as uids of their own, which must be able to execute it.

    Raises:
        InstallError: they are not; the message holds the command that helps.
    """
    if not is_root() or (blocked := blocked_at(path)) is None:
        return path
    rights = "o+x" if blocked.is_dir() else "o+rx"
    raise InstallError(
        f"{path}: started as root, a server runs as another uid, which cannot pass {blocked}; "
        f"put it below /usr/local or /opt, or run: chmod {rights} {blocked}"
    )


def search_path(environ: Mapping[str, str]) -> str:
    """Where commands are looked for: on PATH, and at last beside this Python.

    There lie `mcp-bridge` and uv; but `python3` and `node` mean the host's own where it has them.
    """
    own = str(Path(sys.executable).parent)
    given = environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(dict.fromkeys((*given, own)))


def find_program(name: str, environ: Mapping[str, str]) -> Path | None:
    """The program as an absolute path, found over `search_path`; a path is taken as it is."""
    found = shutil.which(name, path=search_path(environ))
    return Path(os.path.abspath(found)) if found is not None else None  # noqa: PTH100 - no symlinks resolved


def _interpreter(path: Path) -> Path | None:
    try:
        with path.open("rb") as file:
            head = file.read(_SHEBANG_BYTES)
    except OSError:
        return None
    if not head.startswith(b"#!"):
        return None
    words = head[2:].split(b"\n", 1)[0].split()
    return Path(os.fsdecode(words[0])) if words else None
