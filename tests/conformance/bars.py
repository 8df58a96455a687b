"""What the conformance suite and the probes must reach, and what they reach now: the one table.

`goal` is promised; `make show-protocol` compares with it. `now` is reached already, and the tests
hold it: whoever reaches more raises it. None: not served yet, so that there is nothing to hold. When
every `now` equals its goal, the column goes.
"""

from dataclasses import dataclass

from conformance.suite import HANDSHAKE, MODERN

ISOLATED, SHARED = "isolated", "shared"
MODES = (ISOLATED, SHARED)
# What the server behind the proxy speaks: tests/servers/conformance/main.py.
ERAS = ("both", "pinned", "legacy", "modern")
OF = {HANDSHAKE: 30, MODERN: 37}  # scenarios that are scored

# A shared server is offered nothing of its clients, so that it cannot ask them in mid-call.
ASKING = {
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
}
# Toward a shared server that knows the handshake only, a modern client's calls are such calls too.
ASKING_MODERN = {
    "server-stateless",
    *(
        f"input-required-result-{name}"
        for name in (
            "basic-elicitation",
            "basic-sampling",
            "basic-list-roots",
            "request-state",
            "multiple-input-requests",
            "multi-round",
            "non-tool-request",
            "result-type",
            "tampered-state",
            "capability-check",
        )
    ),
}


@dataclass(frozen=True, slots=True)
class Bar:
    """What one run of the suite must reach.

    Attributes:
        era: what the server speaks.
        goal: scored scenarios that must pass.
        now: how many do already; None where that mode is not served yet.
        may_fail: the only ones that may fail at the goal; empty: any, within the goal.
    """

    sessions: str
    era: str
    revision: str
    goal: int
    now: int | None
    may_fail: frozenset[str] = frozenset()


def _bars(sessions: str, era: str, handshake: tuple, modern: tuple) -> tuple[Bar, Bar]:
    return (
        Bar(sessions, era, HANDSHAKE, handshake[0], handshake[1], frozenset(*handshake[2:])),
        Bar(sessions, era, MODERN, modern[0], modern[1], frozenset(*modern[2:])),
    )


# A handshake client of a modern-only server gets an error that names the versions (probe S01), and
# nothing else, so that no scenario of that revision can pass: a goal of 0 is not run.
SUITE = (
    # sessions, the server's era, (goal, now, what may fail) at 2025-11-25, the same at 2026-07-28
    *_bars(ISOLATED, "both", (30, None), (37, None)),
    *_bars(ISOLATED, "pinned", (30, None), (37, None)),
    *_bars(ISOLATED, "legacy", (30, None), (35, None)),
    *_bars(ISOLATED, "modern", (0, None), (37, None)),
    *_bars(SHARED, "both", (26, 26, ASKING), (37, 26)),
    *_bars(SHARED, "pinned", (26, 26, ASKING), (37, 26)),
    *_bars(SHARED, "legacy", (26, 26, ASKING), (26, 26, ASKING_MODERN)),
    *_bars(SHARED, "modern", (0, 0), (37, 5)),
)

# Judged probes that are wrong: what may remain, and what is wrong now. None: not served yet.
# L28 asks in mid-call, as ASKING.
WRONG_AT_GOAL = {ISOLATED: set(), SHARED: {"L28"}}
WRONG_NOW: dict[str, set[str] | None] = {
    ISOLATED: None,
    SHARED: {"L28", "M15", "M16", "M19", "M20", "M27", "S01"},
}

# Where a real client's user is asked in mid-call: mode and the client's revision. At the goal, and
# now (tests/clients/test_elicitation.py).
ELICITS_AT_GOAL = {(ISOLATED, HANDSHAKE), (ISOLATED, MODERN), (SHARED, MODERN)}
ELICITS_NOW: set[tuple[str, str]] = set()
