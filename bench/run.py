#!/usr/bin/env python3
"""Measure this project's proxy beside the limits, and beside its peers.

run.py                  matrix and hol; tables to TABLE.md and stdout
run.py --show           only what has a bar; a line each, exit status 1 unless all pass
run.py --peers          every suite, supergateway and both mcp-proxy too (installed on demand)
run.py SUITE...         only these: matrix hol cold mem kill many
"""

import argparse
import asyncio
import json
import os
import pstats
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path

import uvloop

import procstat
import report
import suites
import targets
from loadgen import callers, load, stop

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PEERS = ["supergateway", "mcp-proxy-py", "mcp-proxy-npm"]
OURS = list(report.ERAS)
STEAL_WORTH_TELLING = 0.05
PROFILE_CALLERS, PROFILE_CALLS, PROFILE_TOP = 16, 20_000, 25


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(suites.SUITES))
    parser.add_argument("--show", action="store_true", help="bars only")
    parser.add_argument("--peers", action="store_true", help="with peers, all suites")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slices", type=int, default=8, help="visits of a target in a round")
    parser.add_argument("--cells", help="of the matrix, as CALLERSxBYTES by comma; say 16x100")
    parser.add_argument("--only", help="targets, by comma: " + ", ".join([*targets.ALL, OURS[1]]))
    parser.add_argument("--quick", action="store_true", help="2 rounds of 2 slices: does it run?")
    parser.add_argument("--profile", action="store_true", help="only profile the proxy")
    options = parser.parse_args()
    if unknown := set(options.suites) - set(suites.SUITES):
        parser.error(f"unknown suites: {', '.join(sorted(unknown))}")
    if options.quick:
        options.rounds, options.slices = 2, 2
    named = [cell.split("x") for cell in options.cells.split(",")] if options.cells else []
    options.cells = [(int(count), int(size)) for count, size in named]
    options.cells = options.cells or (suites.BAR_CELLS if options.show else suites.CELLS)
    if not options.suites:
        options.suites = list(suites.SUITES) if options.peers else ["matrix", "hol"]
    return options


def labels_for(suite, options):
    """The contestants; the limits host no server, so only the matrix has them."""
    if options.only:
        chosen = options.only.split(",")
    else:
        chosen = [*targets.LIMITS, *OURS, *(PEERS if options.peers else ["supergateway"])]
    if suite == "matrix":
        return chosen if options.peers or options.only else [c for c in chosen if c not in PEERS]
    return [c for c in chosen if c not in targets.LIMITS and not c.endswith("-modern")]


async def measure(suite, options):
    RESULTS.mkdir(exist_ok=True)
    rows, stamp, before = [], int(time.time()), procstat.stolen()
    with (RESULTS / f"{suite}.jsonl").open("w", encoding="utf-8") as out:
        async for row in suites.SUITES[suite](labels_for(suite, options), options):
            now = procstat.stolen()
            steal = (now[0] - before[0]) / max(1, now[1] - before[1])
            before = now
            machine = {"load_average": os.getloadavg()[0], "steal": round(steal, 3)}
            full = {"suite": suite, "at": stamp} | machine | row
            out.write(json.dumps(full) + "\n")
            out.flush()
            rows.append(full)
            brief = {key: value for key, value in row.items() if value is not None}
            print(suite, json.dumps(brief), file=sys.stderr, flush=True)
    return rows


def document(results, command):
    parts = [
        f"Command: `{command}`; raw rows in `bench/results/`. Medians of the rounds; CPU is that of a round's best slice."
    ]
    steal = max((row["steal"] for rows in results.values() for row in rows), default=0)
    if steal > STEAL_WORTH_TELLING:
        parts.append(f"Not a quiet machine: up to {steal:.0%} of its CPU was taken by its host.")
    for suite, rows in results.items():
        parts += [f"Figures of `bench/run.py {suite}`:", *report.sections(suite, rows)]
    return "\n\n".join(parts) + "\n"


async def profile():
    """The proxy's functions by own time under 16 callers, 100 B, as cProfile counts them."""
    with tempfile.TemporaryDirectory(prefix="mcp-bridge-bench-") as folder:
        stats = Path(folder) / "profile"
        gateway = await targets.start("ours", prefix=("-m", "cProfile", "-o", stats))
        try:
            clients = await callers(suites.view(gateway, "ours"), PROFILE_CALLERS)
            await load(clients, suites.SMALL, calls=PROFILE_CALLS)
            await stop(clients)
        finally:
            await asyncio.to_thread(gateway.stop)
        with (RESULTS / "profile.txt").open("w", encoding="utf-8") as out:
            pstats.Stats(str(stats), stream=out).sort_stats("tottime").print_stats(PROFILE_TOP)
    return (RESULTS / "profile.txt").read_text(encoding="utf-8")


async def main(options):
    if options.profile:
        RESULTS.mkdir(exist_ok=True)
        print(await profile())
        return 0
    results = {suite: await measure(suite, options) for suite in options.suites}
    if not options.show:
        command = shlex.join(["bench/run.py", *sys.argv[1:]])
        text = document(results, command)
        (HERE / "TABLE.md").write_text(text, encoding="utf-8")
        print(text)
    lines = report.bars(results.get("matrix", []), results.get("hol", []))
    if not options.show:
        lines = [line for line in lines if not line.endswith("NOT RUN")]
    print(*lines, sep="\n")
    missed = [line for line in lines if not line.endswith("PASS")]
    if any("CPU" in line and line.endswith("FAIL") for line in missed):
        print(await profile())
    return 1 if options.show and missed else 0


async def stoppable(options):
    """As `main`, and SIGTERM cancels it, so that what was started is stopped."""
    task = asyncio.ensure_future(main(options))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM


if __name__ == "__main__":
    sys.exit(uvloop.run(stoppable(arguments())))
