"""What differs between two descriptors of a tool, in lines that a person can read."""

import difflib
import json
from collections.abc import Iterator
from typing import Any

TOO_LARGE = "its descriptor is too large to be kept: only that it differs is known"
# Lines of one tool; a descriptor that is kept has 64 KiB.
MOST_LINES = 400


def difference(accepted: dict[str, Any] | None, seen: dict[str, Any]) -> Iterator[str]:
    """Lines that begin with `-` were accepted, those with `+` are listed now, the rest is both.

    Args:
        accepted: as `mcp-bridge tools --json` has it; None for a new tool.
        seen: likewise.
    """
    if seen["descriptor"] is None or (accepted is not None and accepted["descriptor"] is None):
        yield TOO_LARGE
        return
    old = list(_lines(accepted["descriptor"])) if accepted is not None else []
    new = list(_lines(seen["descriptor"]))
    changed = list(difflib.unified_diff(old, new, n=1, lineterm=""))[2:]
    found = [line for line in changed if not line.startswith("@@")]
    for line in found[:MOST_LINES]:
        yield f"{line[0]} {line[1:]}"
    if len(found) > MOST_LINES:
        yield f"… and {len(found) - MOST_LINES} more lines; --json has all"


def _lines(text: str) -> Iterator[str]:
    yield from _flat(json.loads(text), "")


def _flat(value: Any, path: str) -> Iterator[str]:
    """Each leaf with its path; a text of several lines has one each."""
    match value:
        case dict() if value:
            for key, inner in value.items():
                yield from _flat(inner, f"{path}.{key}" if path else key)
        case list() if value:
            for number, inner in enumerate(value):
                yield from _flat(inner, f"{path}[{number}]")
        case str() if "\n" in value:
            yield f"{path}:"
            yield from (f"    {line}" for line in value.split("\n"))
        case _:
            yield f"{path}: {json.dumps(value, ensure_ascii=False)}"
