"""What the egress proxy has carried and refused, by server: a small file that the proxy reads.

It lies in the runtime directory, outlives restarts, and is written at most once per look at it.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.config.files import replace_file

FILE = "counts.json"
VERSION = 1
MODE = 0o640
MAX_BYTES = 16 << 20


@dataclass(slots=True)
class Counts:
    """Of one server.

    Attributes:
        carried: connections whose first byte has reached a listed host, so far.
        refused: by the word of the reason, so far.
        open: connections that are there now, of whatever state.
    """

    carried: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    open: int = 0


def dumps(counts: Mapping[str, Counts]) -> bytes:
    """The file's content."""
    servers = {
        instance: {"carried": each.carried, "refused": each.refused, "open": each.open}
        for instance, each in sorted(counts.items())
    }
    return json.dumps({"version": VERSION, "servers": servers}).encode()


def write(path: Path, data: bytes) -> None:
    """Replace the file. Blocks (memory only, below /run).

    Raises:
        OSError: it cannot be written.
    """
    replace_file(path, data, MODE)


def load(path: Path) -> dict[str, Counts]:
    """Read the file; nothing, where there is none or it is not what `dumps` makes. Blocks."""
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(MAX_BYTES))
        if document["version"] != VERSION:
            return {}
        return {str(name): _counts(found) for name, found in document["servers"].items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


def _counts(found: dict[str, Any]) -> Counts:
    refused = Counter({str(word): int(number) for word, number in found["refused"].items()})
    return Counts(int(found["carried"]), refused, int(found["open"]))
