"""What to exec for a server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# The variable by which the program for a `url` is told of its headers, in JSON: each name's text, or
# an object with `variable`, which has the path of the secret's file, and `prefix`.
HEADERS = "MCP_BRIDGE_HEADERS"


@dataclass(frozen=True, slots=True)
class Command:
    """What to exec for a server: resolved, offline, no shell.

    Attributes:
        argv: the words; the first is an absolute path.
        env: what the command needs beyond the server's own `env` (a node's PATH, say).
        rotated: when a secret of the server's was rotated last, in ns since 1970; 0: never. A
            process that began before is to be replaced.
    """

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    rotated: int = 0
