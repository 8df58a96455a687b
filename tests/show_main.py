"""Show what the main job promises, a line each: what, figure, bar, PASS, FAIL or NOT RUN.

    python tests/show_main.py [--only NAME]...

What a check prints goes to a log below the cache directory. Exits with 1 on FAIL and NOT RUN.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from clients.setup import cache_dir

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
WHAT_WIDTH, FIGURE_WIDTH, BAR_WIDTH = 44, 40, 40
NOT_RUN_STATUS = 77  # as automake's: the check could not run, its last line says why
PROGRESS_EVERY = 10.0  # seconds between signs of life
# Seconds for one check. The bare machines download everything and run `make test` twice.
TIMEOUTS = {"bare": 5400.0, "bench": 1800.0, "chaos": 1800.0}
TIMEOUT = 1200.0
CHAOS_CALLS, CHAOS_KILLS = 50_000, 40

BENCH_LINE = re.compile(
    r"(?P<what>.+?): (?P<figure>.*) \(bar: (?P<bar>.*)\) (?P<verdict>PASS|FAIL|NOT RUN)"
)


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


def tests(what: str, *selection: str) -> Callable[[Runner], Iterator[Line]]:
    """Make a check that runs a selection of the tests; every one must pass."""

    def check(runner: Runner) -> Iterator[Line]:
        report = runner.log.with_suffix(".xml")
        report.unlink(missing_ok=True)
        words = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *selection]
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

    return check


def bare(runner: Runner) -> Iterator[Line]:
    for who in ("root", "user"):
        what = f"bare Debian 12 as {who}: run, call, test"
        bar = "curl and call answer, make test passes"
        own = Runner(runner.name, runner.log.with_name(f"bare-{who}.log"))
        try:
            began = time.monotonic()
            outcome = own.run(script("tests/bare/bare.sh", who))
        except CannotRunError as error:
            yield Line(what, "-", bar, Verdict.NOT_RUN, str(error))
            continue
        verdict = Verdict.FAIL if outcome.status else Verdict.PASS
        figure = f"exit {outcome.status} after {time.monotonic() - began:.0f} s"
        yield Line(what, figure, bar, verdict, outcome.last if outcome.status else "")


def chaos(runner: Runner) -> Iterator[Line]:
    """Judge the figures of the summary that tests/chaos.py prints last."""
    outcome = runner.run(script("tests/chaos.py"))
    try:
        found: dict[str, Any] = json.loads(outcome.last)
        yield from chaos_lines(found, outcome.status)
    except (ValueError, KeyError, TypeError):
        yield Line("chaos", f"exit {outcome.status}", "a summary", Verdict.FAIL, outcome.last[:80])


def chaos_lines(found: dict[str, Any], status: int) -> Iterator[Line]:
    sent, answered, errors = found["sent"], found["answered"], found["errors"]
    fds, fds_after = found["descriptors"], found["descriptors_after"]
    rss, rss_after = found["rss_mib"], found["rss_mib_after"]
    unexplained = len(found["unexplained"])
    for what, figure, bar, holds in (
        (
            "sent = answers + errors",
            f"{sent} = {answered} + {errors}",
            f"equal, >= {CHAOS_CALLS} sent",
            sent == answered + errors and sent >= CHAOS_CALLS,
        ),
        ("answered", f"{found['answered_percent']} %", ">= 95 %", answered >= 0.95 * sent),
        ("kills", found["kills"], CHAOS_KILLS, found["kills"] >= CHAOS_KILLS),
        ("errors that no kill explains", unexplained, 0, unexplained == 0),
        ("answers with another's nonce", found["wrong"], 0, found["wrong"] == 0),
        ("descriptors, before and after", f"{fds}, {fds_after}", "no more", fds_after <= fds),
        (
            "resident MiB, before and after",
            f"{rss}, {rss_after}",
            "at most 10 % more",
            rss_after <= 1.1 * rss,
        ),
        ("the run as a whole", f"seed {found['seed']}, exit {status}", "exit 0", status == 0),
    ):
        verdict = Verdict.PASS if holds else Verdict.FAIL
        yield Line(f"chaos: {what}", str(figure), str(bar), verdict)


def bench(runner: Runner) -> Iterator[Line]:
    """Hand on the lines `what: figure (bar: bar) VERDICT` that bench/run.py --show prints."""
    outcome = runner.run(script("bench/run.py", "--show"))
    lines = [
        Line(match["what"], match["figure"], match["bar"], Verdict(match["verdict"]))
        for match in map(BENCH_LINE.fullmatch, outcome.output.splitlines())
        if match
    ]
    yield from lines
    if not lines or (outcome.status and all(line.verdict is Verdict.PASS for line in lines)):
        yield Line("bench", f"exit {outcome.status}", "its lines", Verdict.FAIL, outcome.last)


def trace(runner: Runner) -> Iterator[Line]:
    outcome = runner.run(script("tests/trace.py"))
    bar = "each has a test, NV ones fail when removed"
    verdict = Verdict.FAIL if outcome.status else Verdict.PASS
    figure = next(
        (line for line in outcome.output.splitlines() if "requirements have a test" in line),
        outcome.last,
    )
    yield Line("requirements traced to tests", figure, bar, verdict)


CHECKS: dict[str, Callable[[Runner], Iterator[Line]]] = {
    "clients": tests("real clients list and call", "-m", "clients", "tests/clients"),
    "hostile": tests("SIGKILL in mid-call, hostile servers", "tests/live/test_hostile.py"),
    "unauthorized": tests("401: credential x route x state", "tests/live/test_unauthorized.py"),
    "reload": tests("configuration edited under load", "tests/live/test_reload.py"),
    "trace": trace,
    "chaos": chaos,
    "bench": bench,
    "bare": bare,
}


def check(name: str, folder: Path) -> list[Line]:
    runner = Runner(name, folder / f"{name}.log")
    note(f"{name} ...")
    lines = []
    try:
        for line in CHECKS[name](runner):
            print(line, flush=True)
            lines.append(line)
    except CannotRunError as error:
        lines.append(Line(name, "-", "-", Verdict.NOT_RUN, str(error)))
        print(lines[-1], flush=True)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=CHECKS, help="this check; repeatable")
    options = parser.parse_args()
    folder = cache_dir() / "show-main"
    folder.mkdir(parents=True, exist_ok=True)
    print(str(Line("what", "figure", "bar", Verdict.PASS)).removesuffix("PASS") + "verdict")
    lines = [line for name in options.only or CHECKS for line in check(name, folder)]
    wrong = [line for line in lines if line.verdict is not Verdict.PASS]
    print(f"{len(lines) - len(wrong)} of {len(lines)} pass; logs in {folder}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
