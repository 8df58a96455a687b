"""Which installed packages running processes use: read from /proc, whoever has started them."""

import os
import re
from pathlib import Path

from autobot_mcp_bridge.units.packages.specs import Kind

PROC = Path("/proc")
# What a process is started with, what it may start by PATH, and what it has mapped.
_FILES = ("cmdline", "environ", "maps")
_UNIT = b"/autobot-mcp-bridge"  # in the cgroup of each process of a server that is a unit
MOST_BYTES = 4 << 20  # of one such file


class UnknownUseError(Exception):
    """A server's process cannot be looked at; the message names it."""


def directories_in_use(root: Path, proc: Path = PROC) -> set[Path]:
    """The package directories of the store at `root` that some process has to do with.

    A process of others that may not be looked at has at least its command line told.

    Raises:
        UnknownUseError: a unit's process may not be looked at, and may use any of them.
    """
    kinds = b"|".join(kind.value.encode() for kind in Kind)
    name = rb"(?:@[^/@\s\0]+/)?[^/@\s\0:]+@[^/\s\0:]+"
    pattern = re.compile(re.escape(os.fsencode(root)) + rb"/(?:" + kinds + rb")/" + name)
    found: set[Path] = set()
    for entry in proc.iterdir():
        if entry.name.isdecimal():
            strict = _UNIT in _read(entry / "cgroup", strict=False)
            for file in _FILES:
                text = _read(entry / file, strict=strict)
                found |= {Path(os.fsdecode(match[0])) for match in pattern.finditer(text)}
    return found


def _read(path: Path, *, strict: bool) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except PermissionError:
        if strict:
            raise UnknownUseError(f"process {path.parent.name} cannot be looked at") from None
        return b""
    except OSError:
        return b""  # it has ended
