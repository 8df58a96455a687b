"""What a run of apply has begun: for the next run, should it not come to its end.

Drop-ins on the disk do not tell whether systemd has read them, started their sockets, or changed the
limits of what runs. So the names are written down before the first drop-in, and the file goes last.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from autobot_mcp_bridge.config.files import remove_file, replace_file

FILE = "unfinished.json"
NAMES = ("added", "changed", "ports")
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Names only; what is right for them, the files say.

    Attributes:
        added, changed: instances.
        ports: socket units of the proxy.
        proxy: whether it has to be restarted.
    """

    added: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    ports: frozenset[str] = frozenset()
    proxy: bool = False

    def __or__(self, other: "Unfinished") -> "Unfinished":
        return Unfinished(
            self.added | other.added,
            self.changed | other.changed,
            self.ports | other.ports,
            self.proxy or other.proxy,
        )


def begin(state_dir: Path, what: Unfinished) -> None:
    """Write down what is about to be changed; durable before it returns."""
    document = {
        key: value if isinstance(value, bool) else sorted(value)
        for key, value in asdict(what).items()
    }
    replace_file(state_dir / FILE, json.dumps(document).encode() + b"\n", _PRIVATE)


def end(state_dir: Path) -> None:
    remove_file(state_dir / FILE)


def left(state_dir: Path) -> Unfinished | None:
    """What an earlier run has not ended; None when there is nothing."""
    try:
        found = json.loads((state_dir / FILE).read_text(encoding="utf-8"))
        added, changed, ports = (frozenset(map(str, found[key])) for key in NAMES)
        return Unfinished(added, changed, ports, bool(found["proxy"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError):
        return Unfinished()  # of another version: at least systemd reads its files again
