"""disk.json: how much of the disk each server takes, as root has measured it last.

Root writes it, the proxy's group reads it: nobody else can look into the servers' directories.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autobot_mcp_bridge.config.accepted import MODE
from autobot_mcp_bridge.config.files import replace_file

FORMAT = 1
MAX_BYTES = 16 << 20  # 10,000 servers
KINDS = ("state", "cache")


@dataclass(frozen=True, slots=True)
class Disk:
    """One measurement.

    Attributes:
        at: when, seconds since the epoch; 0: never.
        servers: instance to kind (of KINDS) to bytes.
        more: instances of which a bound of the walk kept something from being counted.
        packages: bytes of all installed packages.
        unused: path to when it was first seen that nobody needs it.
    """

    at: float = 0.0
    servers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    more: frozenset[str] = frozenset()
    packages: int = 0
    unused: Mapping[str, float] = field(default_factory=dict)

    def since(self, paths: Mapping[str, object] | set[str]) -> dict[str, float]:
        """When each of these was first seen to be unused: now, where it was not before."""
        now = time.time()
        return {path: self.unused.get(path, now) for path in paths}


def write(path: Path, disk: Disk) -> None:
    """Replace the file at once; it keeps its group."""
    document = {
        "format": FORMAT,
        "at": round(disk.at),
        "servers": disk.servers,
        "more": sorted(disk.more),
        "packages": disk.packages,
        "unused": disk.unused,
    }
    replace_file(path, json.dumps(document, indent=1).encode() + b"\n", MODE)


def read(path: Path) -> Disk:
    """The last measurement; one of nothing where there is none, or of another version."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(MAX_BYTES))
        if found["format"] != FORMAT:
            return Disk()
        servers = {
            str(name): {kind: int(sizes[kind]) for kind in KINDS if kind in sizes}
            for name, sizes in dict(found["servers"]).items()
        }
        unused = {str(name): float(since) for name, since in dict(found["unused"]).items()}
        more, packages = frozenset(map(str, found["more"])), int(found["packages"])
        return Disk(float(found["at"]), servers, more, packages, unused)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return Disk()
