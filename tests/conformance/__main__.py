"""Print what the proxy reaches of the conformance suite and the probes, and what it has to reach.

    PYTHONPATH=tests python -m conformance [--sessions MODE]... [--era ERA]... [--probe ID]...

With --era or --probe only that part runs. Exits with 1 where less is reached than before (`now` of
bars.py); what misses its goal is told, with all that fails there.
"""

import argparse
import asyncio
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from clients import setup
from conformance import bars, cells
from conformance.probing import Seen


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table.

    Attributes:
        reached: whether the goal is.
        held: whether what was reached before is.
        beyond: what fails and may not.
        details: all that fails, or is not judged, with what was seen.
    """

    what: str
    figure: str
    goal: str
    reached: bool
    held: bool
    beyond: tuple[str, ...] = ()
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        verdict = "PASS" if self.reached else "not yet" if self.held else "FAIL"
        lines = [f"{self.what:36} {self.figure:>10}  goal {self.goal:18} {verdict}"]
        lines += [f"    {detail}" for detail in self.details if not self.reached]
        return "\n".join(lines)


def row_of_suite(bar: bars.Bar, found: cells.Reports) -> Row:
    report = found[bar.era, bar.revision]
    failing = {scenario.name: "; ".join(scenario.failures) for scenario in report.failing}
    of = len(report.scored)
    return Row(
        what=f"{bar.sessions}, server {bar.era}, {bar.revision}",
        figure=f"{report.passed}/{of}",
        goal=f"{bar.goal}/{of}",
        reached=report.passed >= bar.goal and not (bar.may_fail and failing.keys() - bar.may_fail),
        held=report.passed >= (bar.now or 0),
        beyond=tuple(name for name in failing if name not in bar.may_fail),
        details=tuple(f"{name}: {why}" for name, why in failing.items()),
    )


def row_of_probes(mode: str, found: list[Seen]) -> Row:
    judged = [seen for seen in found if seen.verdict]
    wrong = [seen.probe.ident for seen in judged if seen.verdict == "WRONG"]
    allowed, known = bars.WRONG_AT_GOAL[mode], bars.WRONG_NOW[mode]
    beyond = tuple(ident for ident in wrong if ident not in allowed)
    return Row(
        what=f"{mode}, probes",
        figure=f"{len(judged) - len(wrong)}/{len(judged)}",
        goal="all judged" + (f" but {', '.join(sorted(allowed))}" if allowed else ""),
        reached=not beyond,
        held=known is None or set(wrong) <= known,
        beyond=beyond,
        details=tuple(str(seen) for seen in found if seen.verdict != "ok"),
    )


async def rows_of(mode: str, options: argparse.Namespace) -> list[Row]:
    rows: list[Row] = []
    eras = options.era or (() if options.probe else bars.ERAS)
    try:
        if eras:
            found = await cells.reports(mode, eras)
            chosen = [bar for bar in bars.SUITE if bar.sessions == mode]
            rows += [row_of_suite(bar, found) for bar in chosen if (bar.era, bar.revision) in found]
        if options.probe or not options.era:
            rows.append(row_of_probes(mode, await cells.probed(mode, options.probe or ())))
    except cells.NotServedError as refused:
        what, held = f"{mode}, suite and probes", bars.WRONG_NOW[mode] is None
        rows.append(Row(what, "-", "served", reached=False, held=held, details=(str(refused),)))
    return rows


async def measure(options: argparse.Namespace) -> list[Row]:
    rows = []
    for mode in options.sessions or bars.MODES:
        for row in await rows_of(mode, options):
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
    return 0 if all(row.held for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
