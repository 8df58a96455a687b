"""What is wrong with the configuration, one record per mistake, never with a secret in it."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

Loc = Sequence[str | int]

# Values at or below these keys are never shown: they are secrets, or where people put them by
# mistake (an argv with a token in it, a URL with a password).
HIDDEN = frozenset(
    {"env", "headers", "credentials", "tokens_sha256", "command", "url", "environment", "redis"}
)
SHOWN_CHARACTERS = 60
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake.

    Attributes:
        file: where it stands.
        path: the JSON path, such as `$.servers[2].limits.memory`.
        value: what stands there, shortened; empty where it must not be shown or nothing stands.
        allowed: what is wrong or allowed instead, as a clause.
    """

    file: str
    path: str
    value: str
    allowed: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.path, self.value, self.allowed) if part)

    def as_data(self) -> dict[str, str]:
        return {
            "file": self.file,
            "path": self.path,
            "value": self.value,
            "allowed": self.allowed,
        }


def json_path(loc: Loc) -> str:
    """`$.servers[2].limits.memory`; a key that is no identifier stands quoted in brackets."""
    text = "$"
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _IDENTIFIER.fullmatch(part):
            text += f".{part}"
        else:
            text += f"[{json.dumps(part)}]"
    return text


def show_value(value: object, loc: Loc) -> str:
    """The value at that place in JSON's notation, shortened; empty if it must not be shown."""
    if not HIDDEN.isdisjoint(loc):
        return ""
    match value:
        case dict():
            return "an object"  # its members may be hidden ones
        case list() | tuple():
            return "a list"
        case str():
            text = json.dumps(value[: SHOWN_CHARACTERS + 1])
        case None | bool() | int() | float():
            text = json.dumps(value)
        case _:
            text = json.dumps(str(value)[: SHOWN_CHARACTERS + 1])
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
