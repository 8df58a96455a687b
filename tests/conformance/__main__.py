"""Print what the proxy reaches of the conformance suite and the probes, and what it has to reach.

    PYTHONPATH=tests python -m conformance [--sessions MODE]... [--era ERA]... [--probe ID]...

With --era or --probe only that part runs. A run of the suite that misses its goal is made once more,
alone, and the figures of both are shown. Exits with 1 where a goal is missed; all that fails there
is told.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path

from clients import setup
from conformance import bars, cells, suite
from conformance.probing import Seen


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table.

    Attributes:
        reached: whether the goal is.
        beyond: what fails and may not.
        details: all that fails, or is not judged, with what was seen.
    """

    what: str
    figure: str
    goal: str
    reached: bool
    beyond: tuple[str, ...] = ()
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        verdict = "PASS" if self.reached else "FAIL"
        lines = [f"{self.what:36} {self.figure:>19}  goal {self.goal:10} {verdict}"]
        lines += [f"    {detail}" for detail in self.details if not self.reached]
        return "\n".join(lines)


async def row_of_suite(bar: bars.Bar, first: suite.Report) -> Row:
    found = await cells.judged(bar, first)
    report = found[-1]
    of = len(report.scored)
    return Row(
        what=f"{bar.sessions}, server {bar.era}, {bar.revision}",
        figure=", then ".join(f"{one.passed}/{of}" for one in found),
        goal=f"{bar.goal}/{of}",
        reached=bar.holds(report),
        beyond=bar.beyond(report),
        details=tuple(f"{one.name}: {'; '.join(one.failures)}" for one in report.failing),
    )


def row_of_probes(mode: str, found: list[Seen]) -> Row:
    judged = [seen for seen in found if seen.verdict]
    wrong = [seen.probe.ident for seen in judged if seen.verdict == "WRONG"]
    return Row(
        what=f"{mode}, probes",
        figure=f"{len(judged) - len(wrong)}/{len(judged)}",
        goal="all judged",
        reached=not wrong,
        beyond=tuple(wrong),
        details=tuple(str(seen) for seen in found if seen.verdict != "ok"),
    )


async def rows_of(mode: str, options: argparse.Namespace) -> AsyncIterator[Row]:
    eras = options.era or (() if options.probe else bars.ERAS)
    chosen = [bar for bar in bars.SUITE if bar.sessions == mode and bar.era in eras and bar.goal]
    try:
        for bar, report in (await cells.reports(chosen)).items() if chosen else ():
            yield await row_of_suite(bar, report)
        if options.probe or not options.era:
            yield row_of_probes(mode, await cells.probed(mode, options.probe or ()))
    except cells.NotServedError as refused:
        yield Row(f"{mode}", "-", "served", reached=False, details=(str(refused),))


async def measure(options: argparse.Namespace) -> list[Row]:
    rows = []
    for mode in options.sessions or bars.MODES:
        async for row in rows_of(mode, options):
            print(row, flush=True)
            rows.append(row)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", action="append", choices=bars.MODES)
    parser.add_argument("--era", action="append", choices=bars.ERAS, help="the suite, this server")
    parser.add_argument("--probe", action="append", help="this probe only")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    options = parser.parse_args()
    setup.install()
    rows = asyncio.run(measure(options))
    if options.json:
        text = json.dumps([asdict(row) for row in rows], indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0 if all(row.reached for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
