"""One server's tools against those that were accepted: what is told, and what is held back."""

import logging
import shlex
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from autobot_mcp_bridge.config.baselines import Baseline, Seen
from autobot_mcp_bridge.model.budget import Budget
from autobot_mcp_bridge.model.errors import CallError, Cause, UsageError
from autobot_mcp_bridge.model.redact import Redactor
from autobot_mcp_bridge.policy.drift.baseline import (
    Listing,
    accept,
    accepts,
    seal,
    see,
    state_of,
)
from autobot_mcp_bridge.policy.drift.descriptor import Described

# Names of one line of the log; the command shows all.
MOST_NAMED = 5
# Lines of the log for one server at once, and per second: one that lists other tools each time
# must not fill it.
MOST_LINES = 20
LINES_A_SECOND = 1 / 60
_REDACT = Redactor()

log = logging.getLogger(__name__)


class Drift:
    """What the processes of one server list, whichever of them it was.

    Attributes:
        mode: of the definition, `tools.drift`.
        package: the installed package that the server's next process is of.
        changes: another number when there is something to write down.
    """

    def __init__(self, instance: str, baseline: Baseline | None = None) -> None:
        self.instance = instance
        self.mode = "off"
        self.package: str | None = None
        self.changes = 0
        self.baseline = baseline or Baseline()
        self._lines = Budget(LINES_A_SECOND, MOST_LINES, time.monotonic())

    @property
    def watches(self) -> bool:
        return self.mode != "off"

    @property
    def holds(self) -> bool:
        return self.mode == "hold"

    def accepts(self, name: str, digest: str) -> bool:
        """Tell whether the tool may be listed and called as it is described there."""
        return accepts(self.baseline, name, digest)

    def see(self, tools: Iterable[Described], *, first: bool, whole: bool) -> None:
        """Take in what a process has listed, as in `baseline.Listing`."""
        before = self.baseline.copy()
        listing = Listing(tuple(tools), first, whole, int(time.time()), self.package)
        fresh, differing = see(self.baseline, listing)
        if self.baseline == before:
            return
        self.changes += 1
        if fresh:
            self._say(logging.INFO, f"{_named(fresh)}: accepted as first seen")
        if differing:
            what = "held back" if self.holds else "let through all the same"
            self._say(
                logging.WARNING,
                f"{_named(differing)}: not as accepted, {what}; "
                f"`mcp-bridge tools {self.instance}` shows what differs",
            )

    def refuse_known(self, name: str) -> None:
        """Refuse a tool that differed when it was listed last, by a process of the same package.

        Raises:
            CallError: TOOL_HELD.
        """
        seen = self.baseline.differing.get(name)
        if seen is not None and seen.package == self.package:
            raise self.held(name)

    def held(self, name: str) -> CallError:
        """Why a tool is held back, and what lets it through."""
        state = "changed" if name in self.baseline.accepted else "new"
        why = "is described otherwise than when it was accepted"
        if state == "new":
            why = "has come since the server's tools were accepted"
        accepting = f"mcp-bridge tools accept {self.instance} {shlex.quote(name)}"
        return CallError(
            Cause.TOOL_HELD,
            f"the tool {name} {why}, and is held back until an administrator has looked at it: "
            f"`mcp-bridge tools {self.instance}`, then `{accepting}`",
            data={"tool": name, "drift": state},
        )

    def choose(self, names: Collection[str], seal_seen: str | None) -> dict[str, Seen]:
        """The differing tools of these names, or all, as they are now.

        Raises:
            UsageError: one of them does not differ, or what differs is not what `seal_seen` says.
        """
        differing = self.baseline.differing
        if seal_seen is not None and seal_seen != seal(self.baseline):
            raise UsageError(
                f"{self.instance}: other tools differ than when that was looked at; "
                f"`mcp-bridge tools {self.instance}` shows them"
            )
        for name in names:
            if name in differing:
                continue
            known = "accepted already" if name in self.baseline.accepted else "not listed"
            raise UsageError(f"{self.instance}: the tool {name} is {known}; nothing is accepted")
        now = int(time.time())
        return {name: replace(differing[name], at=now) for name in names or differing}

    def accepting(self, chosen: Mapping[str, Seen]) -> Baseline:
        """The baseline as it will be.

        Raises:
            UsageError: there are too many tools.
        """
        fresh = self.baseline.copy()
        try:
            accept(fresh, chosen)
        except ValueError as error:
            raise UsageError(f"{self.instance}: {error}") from None
        return fresh

    def accept(self, chosen: Mapping[str, Seen]) -> None:
        """Let these through from now on: they are written down."""
        accept(self.baseline, chosen)
        self.changes += 1
        if chosen:
            self._say(logging.INFO, f"{_named(list(chosen))}: accepted")

    @property
    def unaccepted(self) -> int:
        """How many tools are new or changed."""
        return len(self.baseline.differing)

    def counts(self) -> dict[str, int]:
        """How many tools there are in each state."""
        found = dict.fromkeys(("accepted", "new", "changed", "gone"), 0)
        for name in self.baseline.accepted.keys() | self.baseline.differing.keys():
            found[state_of(self.baseline, name)] += 1
        return found

    def shown(self) -> dict[str, Any]:
        """What `mcp-bridge tools NAME` shows."""
        known = self.baseline
        names = sorted(known.accepted.keys() | known.differing.keys())
        return {
            "server": self.instance,
            "drift": self.mode,
            "package": known.package,
            "seal": seal(known) if known.differing else None,
            "tools": [self._shown(name) for name in names],
        }

    def _shown(self, name: str) -> dict[str, Any]:
        accepted = self.baseline.accepted.get(name, ())
        differing = self.baseline.differing.get(name)
        return {
            "name": name,
            "state": state_of(self.baseline, name),
            "accepted": _seen(accepted[-1] if accepted else None, whole=differing is not None),
            "differing": _seen(differing, whole=True),
        }

    def _say(self, level: int, text: str) -> None:
        if self._lines.take(time.monotonic()):
            log.log(
                level, "%s: tools: %s", self.instance, text, extra={"MCP_INSTANCE": self.instance}
            )


def _seen(seen: Seen | None, *, whole: bool) -> dict[str, Any] | None:
    if seen is None:
        return None
    found = {"digest": seen.digest, "package": seen.package, "at": seen.at}
    return {**found, "descriptor": seen.text} if whole else found


def _named(names: list[str]) -> str:
    shown = ", ".join(_REDACT(name) for name in names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
