"""Tables and bars out of a run's rows: medians, and multiples taken inside each round."""

import json
from collections import defaultdict
from statistics import median

from suites import BAR_CELLS, SMALL

REF, FLOOR = "ref", "post"
ERAS = {"ours": "handshake era", "ours-modern": "modern era"}
CPU_BAR = 0.5  # multiple of the reference's CPU a call
SLEEPING_BAR = 1.3  # multiple of the p99 alone

# suite: (title, {column: key})
PLAIN = {
    "cold": (
        "From a gateway's start to the first answer; a new session's first answer (ms)",
        {"start": "start_ms", "new session": "new_session_ms"},
    ),
    "mem": (
        "Memory, a session a server; hosted servers not counted",
        {"PSS MiB": "gateway_pss_mib", "processes": "gateway_processes"},
    ),
    "kill": (
        "SIGKILL of the hosted server in mid-call (ms from the kill)",
        {"error": "error_ms", "same session works": "same_session_ms"},
    ),
    "many": (
        "200 sessions at once",
        {
            "set-up ms": "set_up_ms",
            "calls/s": "per_second",
            "errors": "errors",
            "CPU ms a call": "cpu_ms",
            "KiB a session": "kib_a_session",
        },
    ),
}


def shown(value):
    if not isinstance(value, float):
        return "-" if value is None else str(value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.{1 if abs(value) >= 10 else 2}f}"


def table(head, body):
    """Markdown whose columns are aligned, so that it reads as plain text too."""
    lines = [head, *([shown(cell) for cell in line] for line in body)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]

    def row(line):
        first, *rest = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return "| " + " | ".join([first, *rest]) + " |"

    rule = "|" + "|".join(
        "-" * (width + 1) + ("-" if column == 0 else ":") for column, width in enumerate(widths)
    )
    return "\n".join([row(lines[0]), rule + "|", *map(row, lines[1:])])


def middle(values):
    known = [value for value in values if value is not None]
    return median(known) if known else None


def label_of(cell):
    count, size = cell
    return f"{'100 B' if size == SMALL else '64 KiB'} ×{count}"  # noqa: RUF001 - callers


class Matrix:
    def __init__(self, rows):
        self.by = defaultdict(dict)
        for row in rows:
            if "round" in row:
                self.by[row["target"], row["callers"], row["size"]][row["round"]] = row
        self.targets = list(dict.fromkeys(target for target, *_ in self.by))
        self.cells = list(dict.fromkeys((count, size) for _, count, size in self.by))

    def rounds(self, target, cell):
        return self.by.get((target, *cell), {})

    def median(self, target, cell, key):
        return middle([row[key] for row in self.rounds(target, cell).values()])

    def multiple(self, target, cell, of, key="cpu_ms"):
        """The median over rounds of the multiple of another target in the same round."""
        base = self.rounds(of, cell)
        return middle(
            [
                row[key] / base[number][key]
                for number, row in self.rounds(target, cell).items()
                if row[key] is not None and base.get(number, {}).get(key)
            ]
        )

    def sections(self):
        def section(title, value):
            head = ["target", *map(label_of, self.cells)]
            body = [[name, *(value(name, cell) for cell in self.cells)] for name in self.targets]
            return f"**{title}**\n\n{table(head, body)}"

        def latency(name, cell):
            both = [self.median(name, cell, key) for key in ("p50_ms", "p99_ms")]
            return " / ".join(map(shown, both))

        yield section("Gateway CPU, ms a call", lambda n, c: self.median(n, c, "cpu_ms"))
        for of in (REF, FLOOR):
            if of in self.targets:
                yield section(
                    f"Gateway CPU as a multiple of `{of}`",
                    lambda n, c, of=of: self.multiple(n, c, of),
                )
        yield section("Latency, p50 / p99 ms", latency)
        yield section(
            "Calls with no or a wrong answer",
            lambda n, c: sum(row["errors"] for row in self.rounds(n, c).values()),
        )


def p99(rows, target, beside):
    return middle(
        [row["p99_ms"] for row in rows if row["target"] == target and row.get("beside") == beside]
    )


def hol_section(rows):
    body = []
    for target in dict.fromkeys(row["target"] for row in rows if "beside" in row):
        alone, sleeping, big = (p99(rows, target, b) for b in ("nothing", "sleeping", "10 MiB"))
        own = [row for row in rows if row["target"] == target and "beside" in row]
        errors = sum(r["errors"] + r.get("neighbour", {}).get("errors", 0) for r in own)
        served = [r["neighbour"]["per_second"] for r in own if r["beside"] == "10 MiB"]
        ratio = sleeping / alone if alone and sleeping else None
        body.append([target, alone, sleeping, ratio, big, middle(served), errors])
    head = ["target", "alone", "16 calls asleep", "multiple", "10 MiB answers"]
    title = "p99 ms of a fast server (4 callers, 100 B) alone and beside another server's load"
    return f"**{title}**\n\n{table([*head, '10 MiB/s there', 'errors'], body)}"


def plain_section(suite, rows):
    title, columns = PLAIN[suite]
    keys = list(dict.fromkeys((row["target"], row.get("servers")) for row in rows))
    body = []
    for target, servers in keys:
        own = [r for r in rows if (r["target"], r.get("servers")) == (target, servers)]
        values = [middle([row.get(key) for row in own]) for key in columns.values()]
        body.append([target if servers is None else f"{target}, {servers} servers", *values])
    return f"**{title}**\n\n{table(['target', *columns], body)}"


def sections(suite, rows):
    failed = [
        f"{row['target']} was not measured: {row['failed']}" for row in rows if "failed" in row
    ]
    rows = [row for row in rows if "failed" not in row]
    if suite == "matrix":
        yield from Matrix(rows).sections()
    elif rows:
        yield hol_section(rows) if suite == "hol" else plain_section(suite, rows)
    yield from failed


def read(folder, suite):
    path = folder / f"{suite}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def verdict(what, figure, bar, holds):
    """One line: what, figure, bar, PASS, FAIL or NOT RUN (where a figure is missing)."""
    word = "NOT RUN" if holds is None else "PASS" if holds else "FAIL"
    return f"{what}: {figure} (bar: {bar}) {word}"


def matrix_bars(rows):
    matrix = Matrix(rows)
    for target, era in ERAS.items():
        for cell in BAR_CELLS:
            figure, floor = (matrix.multiple(target, cell, of) for of in (REF, FLOOR))
            rounds = len(matrix.rounds(target, cell))
            what = f"gateway CPU a call, {label_of(cell)} callers, {era}, {rounds} rounds"
            told = f"{shown(figure)} × ref, {shown(floor)} × post"  # noqa: RUF001 - multiples
            holds = None if figure is None or floor is None else figure <= CPU_BAR
            yield verdict(what, told, f"<= {CPU_BAR} × ref", holds)  # noqa: RUF001


def hol_bars(rows):
    alone, sleeping, big = (p99(rows, "ours", b) for b in ("nothing", "sleeping", "10 MiB"))
    theirs = p99(rows, "supergateway", "10 MiB")
    what = "fast server's p99 beside a neighbour's 10 MiB answers"
    holds = None if big is None or theirs is None else big < theirs
    yield verdict(what, f"{shown(big)} ms", f"< supergateway's {shown(theirs)} ms", holds)
    ratio = sleeping / alone if sleeping is not None and alone else None
    what = f"fast server's p99 beside sleeping calls, {shown(sleeping)} ms, by its {shown(alone)} alone"
    holds = None if ratio is None else ratio <= SLEEPING_BAR
    yield verdict(what, shown(ratio), f"<= {SLEEPING_BAR}", holds)


def error_bar(rows):
    own = [row for row in rows if row["target"] in ERAS and "errors" in row]
    errors = sum(row["errors"] + row.get("neighbour", {}).get("errors", 0) for row in own)
    calls = sum(row["calls"] for row in own)
    yield verdict(
        "answers missing or not the call's own",
        f"{errors} of {calls}",
        "0",
        errors == 0 if calls else None,
    )


def bars(matrix, hol):
    return [*matrix_bars(matrix), *hol_bars(hol), *error_bar(matrix + hol)]
