"""What `make show-…` programs share: lines of what, figure, bar and verdict, and how checks run.

What a check prints goes to a log below the cache directory.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from xml.etree import ElementTree as ET

from clients.setup import cache_dir

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
WHAT_WIDTH, FIGURE_WIDTH, BAR_WIDTH = 44, 40, 40
NOT_RUN_STATUS = 77  # as automake's: the check could not run, its last line says why
PROGRESS_EVERY = 10.0  # seconds between signs of life
# Seconds for one check. The bare machines download everything and run `make test` twice.
TIMEOUTS = {
    "bare": 5400.0,
    "bench": 1800.0,
    "backup": 2400.0,
    "broken": 2400.0,
    "bursts": 3600.0,
    "chaos": 1800.0,
    "deb": 3600.0,
    "doctor": 2400.0,
    "fleet": 3600.0,
    "conformance": 1800.0,
    "molecule": 3600.0,
    "package": 3600.0,
    "real": 2400.0,
    "removals": 2400.0,
    "restart": 2400.0,
    "rotate": 2400.0,
    "site": 3600.0,
    "upgrade": 2400.0,
    "vm": 3600.0,
    "work": 3600.0,
}
TIMEOUT = 1200.0


Check = Callable[["Runner"], Iterator["Line"]]


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A bar that a figure must reach; a bare number is one that it may not exceed."""

    value: float


class Verdict(Enum):
    PASS = "PASS"
    FAIL = "FAIL"
    NOT_RUN = "NOT RUN"


@dataclass(frozen=True, slots=True)
class Line:
    what: str
    figure: str
    bar: str
    verdict: Verdict
    reason: str = ""

    def __str__(self) -> str:
        cells = (
            self.what.ljust(WHAT_WIDTH),
            self.figure.ljust(FIGURE_WIDTH),
            self.bar.ljust(BAR_WIDTH),
            self.verdict.value + (f" ({self.reason})" if self.reason else ""),
        )
        return "  ".join(cells)


class CannotRunError(Exception):
    """The check could not be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    status: int
    output: str

    @property
    def last(self) -> str:
        lines = self.output.strip().splitlines()
        return lines[-1].strip() if lines else ""


class Runner:
    """Runs a check's command, its output into a log, with signs of life on stderr."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log

    def run(self, words: Sequence[str | Path]) -> Outcome:
        """Run a command in the repository.

        Raises:
            CannotRunError: there is no such program, it says so itself, or it took too long.
        """
        limit = TIMEOUTS.get(self.name, TIMEOUT)
        path = os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", ""))).rstrip(os.pathsep)
        with self.log.open("w", encoding="utf-8") as log:
            try:
                process = subprocess.Popen(
                    [str(word) for word in words],
                    cwd=ROOT,
                    env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            except OSError as error:
                raise CannotRunError(f"{words[0]}: {error.strerror}") from error
            self._wait(process, limit)
        outcome = Outcome(process.returncode, self.log.read_text(encoding="utf-8"))
        if outcome.status == NOT_RUN_STATUS:
            raise CannotRunError(outcome.last)
        return outcome

    def _wait(self, process: subprocess.Popen[bytes], limit: float) -> None:
        began = time.monotonic()
        while True:
            try:
                process.wait(PROGRESS_EVERY)
            except subprocess.TimeoutExpired:
                passed = time.monotonic() - began
                note(f"  {self.name}: {passed:.0f} s, log {self.log}")
                if passed > limit:
                    process.terminate()
                    try:
                        process.wait(PROGRESS_EVERY)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.wait()
                    raise CannotRunError(f"not done after {limit:.0f} s") from None
            else:
                return


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def script(*words: str) -> list[str | Path]:
    """Return the command for a program of the repository.

    Raises:
        CannotRunError: it is not there.
    """
    path = ROOT / words[0]
    if not path.exists():
        raise CannotRunError(f"{words[0]} does not exist")
    first: list[str | Path] = [sys.executable] if path.suffix == ".py" else ["bash"]
    return [*first, path, *words[1:]]


def tests(what: str, *selection: str, **bars: float | AtLeast) -> Check:
    """Make a check that runs a selection of the tests; every one must pass.

    `bars` are those of figures which the tests record under these names.
    """

    def check(runner: Runner) -> Iterator[Line]:
        report = runner.log.with_suffix(".xml")
        report.unlink(missing_ok=True)
        words = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *selection]
        words += ["-o", "junit_family=legacy"]  # which holds what tests record
        outcome = runner.run(words)
        if not report.exists():
            yield Line(what, f"pytest: {outcome.last}", "all pass", Verdict.FAIL)
            return
        cases = list(ET.parse(report).iter("testcase"))  # noqa: S314 - pytest wrote it just now
        skipped = [case.find("skipped") for case in cases if case.find("skipped") is not None]
        failed = [
            case.get("name", "")
            for case in cases
            if case.find("failure") is not None or case.find("error") is not None
        ]
        good = len(cases) - len(skipped) - len(failed)
        figure = f"{good} of {len(cases)} tests pass"
        if failed or not cases or outcome.status not in (0, 5):
            yield Line(what, figure, "all", Verdict.FAIL, ", ".join(failed[:3]))
        elif skipped:
            reason = (skipped[0].get("message") or "") if skipped[0] is not None else ""
            yield Line(what, figure, "all", Verdict.NOT_RUN, reason)
        else:
            yield Line(what, figure, "all", Verdict.PASS)
        yield from _recorded(what, cases, bars)

    return check


def _recorded(
    what: str, cases: list[ET.Element], bars: Mapping[str, float | AtLeast]
) -> Iterator[Line]:
    """A line for each figure that the tests have recorded and that has a bar."""
    for case in cases:
        suite = (case.get("name") or "").partition("[")[2].rstrip("]")
        for found in case.iter("property"):
            name = found.get("name", "")
            if name in bars:
                value = float(found.get("value", "nan"))
                bar = bars[name]
                text = f"at least {bar.value:g}" if isinstance(bar, AtLeast) else f"at most {bar:g}"
                holds = value >= bar.value if isinstance(bar, AtLeast) else value <= bar
                shown = f"{what}: {name.replace('_', ' ')}" + (f", {suite}" if suite else "")
                verdict = Verdict.PASS if holds else Verdict.FAIL
                yield Line(shown, f"{value:g}", text, verdict)


def check(checks: Mapping[str, Check], name: str, folder: Path) -> list[Line]:
    runner = Runner(name, folder / f"{name}.log")
    note(f"{name} ...")
    lines = []
    try:
        for line in checks[name](runner):
            print(line, flush=True)
            lines.append(line)
    except CannotRunError as error:
        lines.append(Line(name, "-", "-", Verdict.NOT_RUN, str(error)))
        print(lines[-1], flush=True)
    return lines


def show(title: str, what: str, checks: Mapping[str, Check]) -> int:
    """Run the checks that are asked for; 1 when a line is FAIL or NOT RUN."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--only", action="append", choices=checks, help="this check; repeatable")
    options = parser.parse_args()
    folder = cache_dir() / title
    folder.mkdir(parents=True, exist_ok=True)
    print(str(Line("what", "figure", "bar", Verdict.PASS)).removesuffix("PASS") + "verdict")
    lines = [line for name in options.only or checks for line in check(checks, name, folder)]
    wrong = [line for line in lines if line.verdict is not Verdict.PASS]
    print(f"{len(lines) - len(wrong)} of {len(lines)} pass; logs in {folder}")
    return 1 if wrong else 0
