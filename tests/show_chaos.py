"""The whole chaos run as lines of `make show-…`: judged by the summary that tests/chaos.py prints."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from showing import CannotRunError, Check, Line, Runner, Verdict, script

CALLS, KILLS = 50_000, 40


def chaos(runs: Mapping[str, str] | None = None) -> Check:
    """Make a check of one run on children of the proxy, or one for each of `runs`.

    `runs` gives what a run is called, and the word for `--units`.
    """

    def check(runner: Runner) -> Iterator[Line]:
        if runs is None:
            yield from _run(runner, "chaos")
            return
        for what, word in runs.items():
            own = Runner(runner.name, runner.log.with_name(f"{runner.name}-{word}.log"))
            yield from _run(own, what, f"--units={word}")

    return check


def _run(runner: Runner, what: str, *words: str) -> Iterator[Line]:
    try:
        outcome = runner.run(script("tests/chaos.py", *words))
    except CannotRunError as error:
        yield Line(what, "-", "a summary", Verdict.NOT_RUN, str(error))
        return
    try:
        found: dict[str, Any] = json.loads(outcome.last)
        yield from _lines(what, found, outcome.status)
    except (ValueError, KeyError, TypeError):
        yield Line(what, f"exit {outcome.status}", "a summary", Verdict.FAIL, outcome.last[:80])


def _lines(run: str, found: dict[str, Any], status: int) -> Iterator[Line]:
    sent, answered, errors = found["sent"], found["answered"], found["errors"]
    fds, fds_after = found["descriptors"], found["descriptors_after"]
    rss, rss_after = found["rss_mib"], found["rss_mib_after"]
    unexplained = len(found["unexplained"])
    for what, figure, bar, holds in (
        (
            "sent = answers + errors",
            f"{sent} = {answered} + {errors}",
            f"equal, >= {CALLS} sent",
            sent == answered + errors and sent >= CALLS,
        ),
        ("answered", f"{found['answered_percent']} %", ">= 95 %", answered >= 0.95 * sent),
        ("kills", found["kills"], KILLS, found["kills"] >= KILLS),
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
        yield Line(f"{run}: {what}", str(figure), str(bar), verdict)
