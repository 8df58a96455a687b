"""Show what the main job promises, a line each: what, figure, bar, PASS, FAIL or NOT RUN.

    python tests/show_main.py [--only NAME]...

Exits with 1 on FAIL and NOT RUN.
"""

import re
import sys
import time
from collections.abc import Iterator

from show_chaos import chaos
from showing import CannotRunError, Check, Line, Runner, Verdict, script, show, tests

BENCH_LINE = re.compile(
    r"(?P<what>.+?): (?P<figure>.*) \(bar: (?P<bar>.*)\) (?P<verdict>PASS|FAIL|NOT RUN)"
)


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


CHECKS: dict[str, Check] = {
    "clients": tests("real clients list and call", "-m", "clients", "tests/clients"),
    "hostile": tests("SIGKILL in mid-call, hostile servers", "tests/live/test_hostile.py"),
    "unauthorized": tests("401: credential x route x state", "tests/live/test_unauthorized.py"),
    "reload": tests("configuration edited under load", "tests/live/test_reload.py"),
    "trace": trace,
    "chaos": chaos(),
    "bench": bench,
    "bare": bare,
}


if __name__ == "__main__":
    sys.exit(show("show-main", __doc__.splitlines()[0], CHECKS))
