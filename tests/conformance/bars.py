"""What the conformance suite and the probes must reach: the one table, for tests and figures alike."""

from dataclasses import dataclass

from conformance.suite import HANDSHAKE, MODERN, Report

ISOLATED, SHARED = "isolated", "shared"
MODES = (ISOLATED, SHARED)
# What the server behind the proxy speaks: tests/servers/conformance/main.py.
ERAS = ("both", "pinned", "legacy", "modern")
OF = {HANDSHAKE: 30, MODERN: 37}  # scenarios that are scored

# Behind `shared`, a server that knows the handshake only is offered nothing of its clients, since
# nothing in its requests says whose call they belong to: it cannot ask anybody in mid-call.
ASKING = {
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
}
# A modern client's calls to such a server are such calls too.
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
# Isolated, such a server asks by requests without the key that is looked for, and refuses a client
# that lacks a capability with an error of its own era.
FOREIGN = {"server-stateless", "input-required-result-basic-elicitation"}


@dataclass(frozen=True, slots=True)
class Bar:
    """What one run of the suite must reach.

    Attributes:
        era: what the server speaks.
        goal: scored scenarios that must pass.
        may_fail: the only ones that may fail; empty: any, within the goal.
    """

    sessions: str
    era: str
    revision: str
    goal: int
    may_fail: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.sessions}-{self.era}-{self.revision}"

    def beyond(self, report: Report) -> tuple[str, ...]:
        """The scored scenarios that fail and may not."""
        return tuple(one.name for one in report.failing if one.name not in self.may_fail)

    def holds(self, report: Report) -> bool:
        enough = report.passed >= self.goal and len(report.scored) == OF[self.revision]
        return enough and not (self.may_fail and self.beyond(report))


def _bars(sessions: str, era: str, handshake: tuple, modern: tuple) -> tuple[Bar, Bar]:
    return (
        Bar(sessions, era, HANDSHAKE, handshake[0], frozenset(*handshake[1:])),
        Bar(sessions, era, MODERN, modern[0], frozenset(*modern[1:])),
    )


# A handshake client of an isolated modern-only server gets an error that names the versions (probe
# S01), and nothing else, so that no scenario of that revision can pass: a goal of 0 is not run.
SUITE = (
    # sessions, the server's era, (goal, what may fail) at 2025-11-25, the same at 2026-07-28
    *_bars(ISOLATED, "both", (30,), (37,)),
    *_bars(ISOLATED, "pinned", (30,), (37,)),
    *_bars(ISOLATED, "legacy", (30,), (35, FOREIGN)),
    *_bars(ISOLATED, "modern", (0,), (37,)),
    *_bars(SHARED, "both", (30,), (37,)),
    *_bars(SHARED, "pinned", (30,), (37,)),
    *_bars(SHARED, "legacy", (26, ASKING), (26, ASKING_MODERN)),
    *_bars(SHARED, "modern", (30,), (37,)),
)
# What `make test` runs: each mode, era and revision, and each way of asking. `make conformance` and
# `make show-protocol` run all.
ALWAYS = (
    (ISOLATED, "both", HANDSHAKE),
    (ISOLATED, "legacy", MODERN),
    (ISOLATED, "modern", MODERN),
    (SHARED, "pinned", MODERN),
    (SHARED, "legacy", HANDSHAKE),
    (SHARED, "modern", HANDSHAKE),
)
