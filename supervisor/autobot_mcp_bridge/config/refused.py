"""refused.txt: what apply has found wrong with the files, for the proxy, which never reads them.

A line for each mistake, as `Problem` writes itself, without secrets; empty while there is none.
Root writes it, the proxy's group reads it.
"""

from pathlib import Path

from autobot_mcp_bridge.config.accepted import MODE
from autobot_mcp_bridge.config.files import replace_file
from autobot_mcp_bridge.config.problem import Problem

MAX_BYTES = 1 << 16  # some hundred mistakes; `mcp-bridge check` tells all


def write(path: Path, text: str) -> None:
    """Replace the file at once if it says anything else; it keeps its group."""
    wanted = text.encode("utf-8", "replace")[:MAX_BYTES]
    if _content(path) != wanted:
        replace_file(path, wanted, MODE)


def read(path: Path) -> tuple[Problem, ...]:
    """The mistakes that keep the files from being in force."""
    lines = _content(path).decode("utf-8", "replace").splitlines()
    return tuple(problem(line) for line in lines if line)


def problem(line: str) -> Problem:
    """One line of what apply says."""
    file, _, clause = line.partition(": ")
    return Problem(file, "", "", clause)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES)
    except OSError:
        return b""  # none was ever refused, or another user's files are looked at
