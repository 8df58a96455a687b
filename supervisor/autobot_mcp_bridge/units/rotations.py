"""When secrets were rotated for servers that are to be started anew by it: root's note for apply.

Times, and nothing of the values: the proxy reads the newest of a server's in accepted.json, and
replaces a process that began with another. A secret that is replaced without a restart leaves no
time here.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path

from autobot_mcp_bridge.config.files import replace_file
from autobot_mcp_bridge.model.server import ServerSpec

FILE = "rotations.json"
_PRIVATE = 0o600


def read(state_dir: Path) -> dict[str, int]:
    """Name of a secret to nanoseconds since 1970.

    A lost or broken file is none: its servers start once more, between calls.
    """
    try:
        found = json.loads((state_dir / FILE).read_text(encoding="utf-8"))
        return {str(name): int(time_ns) for name, time_ns in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def note(state_dir: Path, name: str) -> None:
    """Write down that this one was rotated now; durable before it returns."""
    _write(state_dir, {**read(state_dir), name: time.time_ns()})


def forget(state_dir: Path, name: str) -> None:
    """Of a secret that is gone nothing is left."""
    found = read(state_dir)
    if found.pop(name, None) is not None:
        _write(state_dir, found)


def newest(spec: ServerSpec, rotations: Mapping[str, int]) -> int:
    """The newest time among the server's secrets; 0: none was rotated."""
    names = (each.name for each in spec.secrets.values() if each.name is not None)
    return max((rotations.get(name, 0) for name in names), default=0)


def _write(state_dir: Path, found: Mapping[str, int]) -> None:
    replace_file(state_dir / FILE, json.dumps(found).encode() + b"\n", _PRIVATE)
