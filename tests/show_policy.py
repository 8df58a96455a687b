"""Show who may do what, a line each: what, figure, bar, PASS, FAIL or NOT RUN.

    python tests/show_policy.py [--only NAME]...

What concerns units runs on systemd 252 and 257, in the containers of tests/lab. A promise whose test
is not written yet is NOT RUN. Exits with 1 on FAIL and NOT RUN.
"""

import sys
from collections.abc import Iterator

from show_main import BENCH_LINE, trace
from showing import ROOT, CannotRunError, Check, Line, Runner, Verdict, script, show, tests


def of_files(what: str, *words: str) -> Check:
    """The tests of some files; NOT RUN where one of them does not exist yet."""
    paths = [word.partition("::")[0] for word in words if word.startswith("tests/")]
    check = tests(what, *words)

    def run(runner: Runner) -> Iterator[Line]:
        for path in paths:
            if not (ROOT / path).exists():
                raise CannotRunError(f"{path} does not exist yet")
        yield from check(runner)

    return run


def cost(runner: Runner) -> Iterator[Line]:
    """Hand on the lines that bench/policy.py --show prints."""
    outcome = runner.run(script("bench/policy.py", "--show"))
    lines = [
        Line(found["what"], found["figure"], found["bar"], Verdict(found["verdict"]))
        for found in map(BENCH_LINE.fullmatch, outcome.output.splitlines())
        if found
    ]
    yield from lines
    if not lines or (outcome.status and all(line.verdict is Verdict.PASS for line in lines)):
        yield Line("policy cost", f"exit {outcome.status}", "its line", Verdict.FAIL, outcome.last)


CHECKS: dict[str, Check] = {
    "strangers": of_files(
        "strangers: routes, credentials, states",
        "tests/live/test_unauthorized.py",
        "tests/policy/test_v1.py",
    ),
    "contacts": of_files(
        "all routes x forms x states, no contact", "tests/policy/test_strangers.py"
    ),
    "projects": of_files(
        "projects and keys", "tests/policy/test_projects.py", "tests/policy/test_keys.py"
    ),
    "chain": of_files("the chain, a test each pair", "tests/policy/test_chain.py"),
    "manifests": of_files("manifests of agent types", "tests/policy/test_manifest.py"),
    "scopes": of_files("scopes of arguments", "tests/policy/test_scopes.py"),
    "filters": of_files("filters of arguments and answers", "tests/policy/test_filters.py"),
    "limits": of_files(
        "limits, in memory and shared",
        "tests/policy/test_limits.py",
        "tests/policy/test_shared_limits.py",
    ),
    "audit": of_files(
        "audit: a line each call, flipped bytes named",
        "tests/policy/test_audit.py",
        "tests/policy/test_audit_file.py",
        "tests/policy/test_audit_shown.py",
    ),
    "audit-units": of_files(
        "the same of the proxy as a unit", "-m", "lab", "tests/policy/test_audit_units.py"
    ),
    "audit-chaos": of_files("audit lines in the chaos run", "tests/policy/test_audit_chaos.py"),
    "sentinel": of_files("a sentinel secret is nowhere", "tests/policy/test_sentinel.py"),
    "descriptors": of_files(
        "descriptors are the server's own",
        "tests/policy/test_manifest.py::test_descriptors_are_the_server_s_own_value_for_value",
    ),
    "openapi": of_files("schemathesis finds no 5xx", "tests/policy/test_openapi.py"),
    "fuzz": of_files("10,000 fuzzed inputs", "-m", "soak", "tests/policy/test_fuzz.py"),
    "removals": of_files(
        "controls removed make a test fail", "-m", "removal", "tests/removals/test_removals.py"
    ),
    "mutation": of_files(
        "mutants of the policy package killed", "tests/mutation/test_survivors.py"
    ),
    "cost": cost,
    "trace": trace,
}

if __name__ == "__main__":
    sys.exit(show("show-policy", __doc__.splitlines()[0], CHECKS))
