"""enforced.json: which promises of the sandbox this host keeps, as root has tried them.

It lies in the runtime directory: a boot may bring another kernel. Everybody may read it.
"""

import json
from pathlib import Path

from autobot_mcp_bridge.config.files import replace_file
from autobot_mcp_bridge.model.promises import Facts, Kept, Promise

FORMAT = 1
MODE = 0o644
MAX_BYTES = 1 << 16
MOST_WHY = 500  # characters


def parse(text: bytes) -> Facts:
    """What the probe prints, or the file's own promises.

    Raises:
        ValueError: it is something else, or leaves out a promise.
    """
    try:
        found = json.loads(text)
        return {
            promise: Kept(found[promise]["kept"] is True, str(found[promise]["why"])[:MOST_WHY])
            for promise in Promise
        }
    except (LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"not what the probe prints: {type(error).__name__}") from None


def none_kept(why: str) -> Facts:
    """Nothing could be tried."""
    return {promise: Kept(kept=False, why=why) for promise in Promise}


def write(path: Path, facts: Facts) -> None:
    """Replace the file at once, if it says anything else."""
    if facts == read(path):
        return
    promises = {name: {"kept": found.kept, "why": found.why} for name, found in facts.items()}
    text = json.dumps({"format": FORMAT, "promises": promises}, indent=1) + "\n"
    replace_file(path, text.encode(), MODE)


def read(path: Path) -> Facts:
    """The facts; empty where nobody has found them out since the boot, or for another version."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(MAX_BYTES))
        return parse(json.dumps(found["promises"]).encode()) if found["format"] == FORMAT else {}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}
