"""egress.json: what each server with network mode names may reach; apply writes it, root's group reads.

The egress proxy keeps to what it has read last, so that a broken file neither opens nor closes
anything.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.config import written
from autobot_mcp_bridge.config.files import replace_file
from autobot_mcp_bridge.model.destinations import Destination, parse_entry

VERSION = 1
MODE = 0o640

Allowed = Mapping[str, tuple[Destination, ...]]


def write(path: Path, servers: Mapping[str, Iterable[str]]) -> bool:
    """Have the file say so; whether it did not before. It keeps the group that it has.

    Args:
        path: of the file.
        servers: instance to its entries of network.allow, which have been checked.
    """
    document = {
        "version": VERSION,
        "servers": {
            instance: [str(parse_entry(text)) for text in servers[instance]]
            for instance in sorted(servers)
        },
    }
    data = json.dumps(document, indent=1).encode() + b"\n"
    try:
        if path.read_bytes() == data:
            return False
    except OSError:
        pass
    replace_file(path, data, MODE)
    return True


def read(path: Path) -> Allowed:
    """Read the file; without one, or with the empty one of tmpfiles.d, nothing is allowed.

    Raises:
        DataError: it is not what apply writes.
    """
    return written.read(path, VERSION, _allowed) or {}


def _allowed(document: Any) -> Allowed:
    return {
        str(instance): tuple(parse_entry(entry) for entry in entries)
        for instance, entries in document["servers"].items()
    }
