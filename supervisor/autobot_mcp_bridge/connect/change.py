"""Changes of a client's file, whatever its syntax: pure."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Set:
    """A key gets a value; tables on the way that are missing are made."""

    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Unset:
    """A key that is there goes."""

    path: Path


@dataclass(frozen=True, slots=True)
class Append:
    """A list that is there gets one more element, at its end."""

    path: Path
    value: Any


Change = Set | Unset | Append


def applied(document: dict[str, Any], changes: Sequence[Change]) -> dict[str, Any]:
    """What a document is to be after the changes: how an edit of its text is proved."""
    result = copy.deepcopy(document)
    for change in changes:
        *way, last = change.path
        table = result
        for key in way:
            table = table.setdefault(key, {})
        match change:
            case Set():
                table[last] = change.value
            case Unset():
                del table[last]
            case Append():
                table[last].append(change.value)
    return result
