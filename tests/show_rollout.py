"""Show what the rollout promises, a line each: what, figure, bar, PASS, FAIL or NOT RUN.

    python tests/show_rollout.py [--only NAME]...

Everything runs on Debian 12 and 13, in the containers of tests/lab, by the Ansible of
.venv-ansible. Exits with 1 on FAIL and NOT RUN.
"""

import re
import sys
import time
from collections.abc import Iterator

from showing import Check, Line, Runner, Verdict, script, show, tests

MOLECULE_BAR = 900.0  # seconds for all scenarios, on two cores
_PASSED = re.compile(r"^(\S+) passed after \d+ s", re.MULTILINE)


def molecule(runner: Runner) -> Iterator[Line]:
    began = time.monotonic()
    outcome = runner.run(script("tests/run_molecule.py"))
    took = time.monotonic() - began
    good = outcome.status == 0 and took <= MOLECULE_BAR
    passed = ", ".join(_PASSED.findall(outcome.output)) or "none"
    figure = f"{took:.0f} s; passed: {passed}"
    verdict = Verdict.PASS if good else Verdict.FAIL
    yield Line(
        "molecule, all scenarios", figure, f"pass, {MOLECULE_BAR:.0f} s on two cores", verdict
    )


def lint(runner: Runner) -> Iterator[Line]:
    outcome = runner.run(["make", "lint-ansible"])
    verdict = Verdict.PASS if outcome.status == 0 else Verdict.FAIL
    yield Line("ansible-lint, yamllint", f"status {outcome.status}", "production, clean", verdict)


CHECKS: dict[str, Check] = {
    "site": tests(
        "bare Debian to a served call, then the rest", "-m", "lab", "tests/rollout/test_site.py"
    ),
    "preflight": tests(
        "a host without what its servers need is refused", "tests/rollout/test_preflight.py"
    ),
    "real": tests("servers of PyPI and npm by site.yml", "-m", "lab", "tests/rollout/test_real.py"),
    "templates": tests("templates, Ansible's and ours", "tests/rollout/test_templates.py"),
    "lint": lint,
    "molecule": molecule,
    "rotate": tests(
        "rotate-tokens.yml under load, two hosts",
        "-m",
        "lab",
        "tests/rollout/test_tokens.py",
        failed_calls=0,
    ),
    "upgrade": tests(
        "upgrade.yml under load, two hosts",
        "-m",
        "lab",
        "tests/rollout/test_upgrade.py",
        "-k",
        "not broken",
        failed_calls=0,
    ),
    "broken": tests(
        "a broken release is taken back on the canary",
        "-m",
        "lab",
        "tests/rollout/test_upgrade.py",
        "-k",
        "broken",
    ),
    "drain": tests("drain.yml, rejoin.yml", "-m", "lab", "tests/rollout/test_drain.py"),
    "backup": tests(
        "backup, wipe, restore", "-m", "lab", "tests/rollout/test_backup.py", differing_paths=0
    ),
    "placement": tests(
        "a fourth host, of 1,000 names", "tests/unit/rollout/test_placement.py", moved_percent=28
    ),
    "package": tests(
        "Debian packages by site.yml, under load",
        "-m",
        "lab",
        "tests/rollout/test_deb.py",
        failed_calls=0,
    ),
    "deb": tests(
        "Debian packages, from install to purge", "-m", "lab", "tests/systemd/test_deb.py"
    ),
}

if __name__ == "__main__":
    sys.exit(show("show-rollout", __doc__.splitlines()[0], CHECKS))
