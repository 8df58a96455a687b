"""Show what MCP in both eras promises, a line each: what, figure, bar, PASS, FAIL or NOT RUN.

    python tests/show_protocol.py [--only NAME]...

The suite's and the probes' bars are the goals of tests/conformance/bars.py. What concerns units runs
on systemd 252 and 257, in the containers of tests/lab. Exits with 1 on FAIL and NOT RUN.
"""

import json
import os
import random
import secrets
import sys
from collections.abc import Iterator

from removals.table import REMOVALS
from show_main import trace
from showing import Check, Line, Runner, Verdict, show, tests

DRAWN = 20  # removals of which each run makes a test anew
REMOVAL_TEST = "test_a_test_fails_once_what_it_shows_is_taken_away"


def conformance(runner: Runner) -> Iterator[Line]:
    """A line for each mode, era of the server and revision, and for the probes of each mode."""
    report = runner.log.with_suffix(".json")
    report.unlink(missing_ok=True)
    outcome = runner.run([sys.executable, "-m", "conformance", "--json", report])
    if not report.exists():
        yield Line("conformance", f"exit {outcome.status}", "its lines", Verdict.FAIL, outcome.last)
        return
    for row in json.loads(report.read_text(encoding="utf-8")):
        verdict = Verdict.PASS if row["reached"] else Verdict.FAIL
        why = row["beyond"] or row["details"]
        shown = ", ".join(why[:3]) + (f" and {len(why) - 3} more" if len(why) > 3 else "")
        yield Line(
            row["what"], row["figure"], row["goal"], verdict, "" if row["reached"] else shown
        )


def removals(runner: Runner) -> Iterator[Line]:
    """Some drawn at random; MCP_BRIDGE_TEST_SEED draws the same ones again."""
    seed = int(os.environ.get("MCP_BRIDGE_TEST_SEED") or secrets.randbelow(1_000_000))
    drawn = random.Random(seed).sample(sorted(REMOVALS), DRAWN)
    cases = [f"tests/removals/test_removals.py::{REMOVAL_TEST}[{name}]" for name in drawn]
    what = f"{DRAWN} removals, seed {seed}, are noticed"
    yield from tests(what, "-m", "removal", *cases)(runner)


CHECKS: dict[str, Check] = {
    "conformance": conformance,
    "conformance-units": tests(
        "suite and probes, servers as units",
        "-m",
        "lab",
        "tests/systemd/test_conformance.py",
        short_of_the_goal=0,
        wrong_beyond_the_goal=0,
    ),
    "clients": tests("real clients list and call", "tests/clients/test_clients.py"),
    "clients-units": tests(
        "real clients, servers as units", "-m", "lab", "tests/systemd/test_clients.py"
    ),
    "clients-elicit": tests(
        "real clients answer elicitations", "tests/clients/test_elicitation.py"
    ),
    "soak": tests("100 clients, 5 minutes, kills", "-m", "soak", "tests/soak"),
    "large": tests("20 MiB both ways, 100,000 unread notifications", "tests/live/test_large.py"),
    "oauth": tests("OAuth: wrong, expired, rotated, issuer down", "tests/live/test_oauth.py"),
    "removals": removals,
    "trace": trace,
}

if __name__ == "__main__":
    sys.exit(show("show-protocol", __doc__.splitlines()[0], CHECKS))
