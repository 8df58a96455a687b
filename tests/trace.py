# ruff: noqa: A005 - `make trace` is this file; nothing here imports the library's trace
"""Show for each requirement its tests and how they went.

    python tests/trace.py                  run the tests that claim a requirement, then show
    python tests/trace.py --report FILE    show what an earlier run with --trace-to=FILE wrote
    python tests/trace.py --collect        show without running anything

Exits with 1 if a requirement has no test, a test claims an unknown one, or a result is not
"passed" (with --collect, results do not count).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from requirements import BY_ID, REQUIREMENTS
from trace_record import MARKER

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
REMOVAL = "tests/nv/test_removal.py"


@dataclass(frozen=True, slots=True)
class Claim:
    ident: str
    test: str
    result: str


def run(*, collect: bool) -> list[Claim]:
    """Run (or only collect) every test that claims a requirement, its output on stderr."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "trace.json"
        words = [sys.executable, "-m", "pytest", "-q", "-p", "trace_record", f"--trace-to={report}"]
        # Claims are read from all collected tests, so a collection needs no selection.
        words += ["--collect-only"] if collect else ["-m", f"{MARKER} and not soak and not vm"]
        path = os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", ""))).rstrip(os.pathsep)
        done = subprocess.run(
            words,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if collect else sys.stderr,
            check=False,
        )
        if not report.exists():
            sys.exit(f"pytest ended with status {done.returncode} and without a report")
        return read(report)


def read(report: Path) -> list[Claim]:
    return [
        Claim(ident, entry["test"], entry["result"])
        for entry in json.loads(report.read_text(encoding="utf-8"))
        for ident in entry["claims"]
    ]


def short(test: str) -> str:
    """`live/test_http.py::test_x` for a test's full id."""
    return test.removeprefix("tests/")


def table(claims: list[Claim]) -> list[str]:
    """Return the aligned rows; a requirement without a test has a row that says so."""
    rows = [("id", "requirement", "test", "result")]
    for requirement in REQUIREMENTS:
        own = [claim for claim in claims if claim.ident == requirement.id]
        first = (requirement.id, requirement.says)
        if not own:
            rows.append((*first, "-", "NO TEST"))
        for claim in own:
            what = "fails when removed" if claim.test.startswith(REMOVAL) else ""
            result = f"{claim.result} ({what})" if what else claim.result
            rows.append((*first, short(claim.test), result))
            first = ("", "")
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]))
        for row in rows
    ]


def faults(claims: list[Claim], *, collect: bool) -> list[str]:
    claimed = {claim.ident for claim in claims}
    found = [f"{ident}: no test claims it" for ident in BY_ID if ident not in claimed]
    found += [
        f"{claim.test}: claims {claim.ident}, which is not in tests/requirements.py"
        for claim in claims
        if claim.ident not in BY_ID
    ]
    if not collect:
        found += [
            f"{claim.ident}: {short(claim.test)}: {claim.result}"
            for claim in claims
            if claim.result != "passed"
        ]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", type=Path, help="what an earlier run wrote")
    parser.add_argument("--collect", action="store_true", help="do not run the tests")
    options = parser.parse_args()
    claims = read(options.report) if options.report else run(collect=options.collect)
    print("\n".join(table(claims)))
    wrong = faults(claims, collect=options.collect)
    tested = len({claim.ident for claim in claims} & set(BY_ID))
    print(f"\n{tested} of {len(BY_ID)} requirements have a test; {len(wrong)} faults")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
