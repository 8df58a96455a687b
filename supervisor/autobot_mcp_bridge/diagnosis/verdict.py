"""What doctor says in the end."""

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from autobot_mcp_bridge.diagnosis.changes import Change
from autobot_mcp_bridge.diagnosis.check import Check, Level
from autobot_mcp_bridge.diagnosis.outcome import Outcome
from autobot_mcp_bridge.units.instances import service_of

ADMINISTRATOR = "90-doctor.conf"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a server starts, and why it does not.

    Attributes:
        code: the stable word; "" for a server that starts.
        why: a clause that begins with a verb, of which the server is the subject.
        changes: what makes it start, all of it together; tried, but for what `advice` says.
        advice: what to do, where there is no such change, or a makeshift only; a clause.
        outcome: of the first try, under the server's own profile; None: it was not tried.
    """

    code: str
    why: str
    changes: tuple[Change, ...] = ()
    advice: str = ""
    outcome: Outcome | None = None

    @property
    def key(self) -> dict[str, object]:
        """The changes that servers.json has a key for."""
        found: dict[str, object] = {}
        for change in self.changes:
            for name, value in change.key.items():
                before = found.get(name)
                if isinstance(before, dict) and isinstance(value, dict):
                    found[name] = {**before, **value}
                else:
                    found[name] = value
        return found

    @property
    def lines(self) -> tuple[str, ...]:
        """The others: lines of [Service]."""
        return tuple(line for change in self.changes if not change.key for line in change.lines)

    @property
    def mend(self) -> str:
        """What to do, in one clause."""
        if self.advice:
            # What the lines do is a stopgap then, and too long for one line.
            return (
                f"{self.advice}; until then the drop-in below does" if self.lines else self.advice
            )
        clauses = []
        if key := self.key:
            clauses.append(f"set {as_keys(key)}")
        if self.lines:
            clauses.append(f"allow it with {', '.join(self.lines)}")
        return " and ".join(clauses)


@dataclass(frozen=True, slots=True)
class Report:
    """All of it.

    Attributes:
        tries: how many processes were started to find out.
        notes: what else is worth knowing, a sentence each.
    """

    server: str
    verdict: Verdict
    checks: tuple[Check, ...]
    tries: int = 0
    notes: tuple[str, ...] = field(default=())

    @property
    def healthy(self) -> bool:
        return not self.verdict.code

    def as_data(self) -> dict[str, object]:
        """For `--json`."""
        verdict, outcome = self.verdict, self.verdict.outcome
        return {
            "server": self.server,
            "healthy": self.healthy,
            "code": verdict.code or None,
            "summary": self.summary,
            "key": verdict.key,
            "drop_in": list(verdict.lines),
            "drop_in_file": self._file if verdict.lines else None,
            "advice": verdict.advice,
            "first_try": outcome.as_data() if outcome is not None else None,
            "last_words": list(outcome.words) if outcome is not None else [],
            "stdout_noise": outcome.noise if outcome is not None else "",
            "tries": self.tries,
            "checks": [check.as_data() for check in self.checks],
            "notes": list(self.notes),
        }

    @property
    def summary(self) -> str:
        """The first line: the cause and what to do."""
        mend = self.verdict.mend
        return f"{self.server} {self.verdict.why}{f'; {mend}' if mend else ''}"

    @property
    def _file(self) -> str:
        return f"/etc/systemd/system/{service_of(self.server)}.d/{ADMINISTRATOR}"

    def text(self) -> list[str]:
        """The lines for people."""
        verdict, outcome = self.verdict, self.verdict.outcome
        lines = [self.summary]
        if verdict.lines:
            lines += ["", f"add to {self._file}:", *_indented(("[Service]", *verdict.lines))]
            lines += ["then:", *_indented(("systemctl daemon-reload",))]
        if verdict.key:
            lines += ["", "servers.json:", *_indented((as_keys(verdict.key),))]
        if verdict.code:
            lines += ["", f"more: mcp-bridge explain {shlex.quote(verdict.code)}"]
        if outcome is not None and outcome.noise and not verdict.code:
            lines += ["", f"its stdout says {outcome.noise!r}, which belongs on stderr"]
        if outcome is not None and outcome.words and not outcome.works:
            lines += ["", "its last words:", *_indented(outcome.words[-10:])]
        lines += [
            "",
            *(f"{check.level.value:4}  {check.what}: {_told(check)}" for check in self.checks),
        ]
        return [*lines, *(f"note  {note}" for note in self.notes)]


def of_check(check: Check) -> Verdict:
    """What a check has found that keeps the server from starting."""
    changes = () if check.key is None else (Change(None, "", (), check.key),)
    return Verdict(check.code, check.text, changes, check.mend)


def _told(check: Check) -> str:
    return f"{check.text}; {check.mend}" if check.level is Level.WARN and check.mend else check.text


def as_keys(key: Mapping[str, object]) -> str:
    """The part of a definition as it stands in the file, without the braces around it."""
    return json.dumps(dict(key), ensure_ascii=False)[1:-1]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
