"""One line of a preflight: what was looked at, and how it is."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """A thing that was looked at.

    Attributes:
        what: its name, such as `command`.
        text: how it is, one clause.
        code: for a failure that keeps the server from starting by itself, its stable word.
        mend: what helps, one clause.
        key: the part of a definition that helps, as it stands in servers.json.
    """

    level: Level
    what: str
    text: str
    code: str = ""
    mend: str = ""
    key: dict[str, object] | None = None

    def as_data(self) -> dict[str, object]:
        """For `--json`."""
        return {"level": self.level.value, "check": self.what, "text": self.text}


def ok(what: str, text: str) -> Check:
    return Check(Level.OK, what, text)


def warn(what: str, text: str, mend: str = "") -> Check:
    return Check(Level.WARN, what, text, mend=mend)


def fail(what: str, text: str, code: str, mend: str, key: dict[str, object] | None = None) -> Check:
    return Check(Level.FAIL, what, text, code, mend, key)
