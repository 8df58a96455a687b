"""What came of a soak: answers, errors with the kills that explain them, and what crossed."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from support.waiting import PATIENCE

WITHIN = 30.0 * PATIENCE  # seconds; what has no answer by then is lost
ELICIT = "elicitation/create"
UPDATED = "notifications/resources/updated"
# What an isolated server's client is told when the process that it talked to is no more.
OVER = ("server_crashed", "input_late")
CODE_GONE = -32001  # of a session that has ended with its process


@dataclass
class Kill:
    pid: int
    began: float
    ended: float = float("inf")


@dataclass
class Tally:
    """What came of it all.

    Attributes:
        done: right answers, by what was done.
        left: clients that vanished, by how.
        told: changes that listeners heard of.
        errors: what was not answered: what, from when to when, its answer or None.
        wrong: answers that are not of their request.
    """

    done: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    errors: list[tuple[str, float, float, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)

    def unexplained(self) -> list[str]:
        return [
            f"{what}: {error}"
            for what, began, ended, error in self.errors
            if not any(k.began <= ended and began <= k.ended for k in self.kills)
            or not is_of_a_kill(error)
        ]


def is_of_a_kill(error: Any) -> bool:
    """Whether this JSON-RPC error is what the death of a server leads to."""
    if not isinstance(error, dict):
        return False
    data = error.get("data") or {}
    if (death := data.get("death")) is not None:
        return bool(death.get("signal") == "SIGKILL")
    return data.get("code") in OVER or error.get("code") == CODE_GONE


class CrossedError(Exception):
    """An answer that is not of its request."""


def same(wanted: object, found: object) -> None:
    if wanted != found:
        raise CrossedError(f"{found!r} instead of {wanted!r}")


def filled_in(nonce: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"nonce": nonce}}
