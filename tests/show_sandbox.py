"""Show what the sandbox promises, a line each: what, figure, bar, PASS, FAIL or NOT RUN.

    python tests/show_sandbox.py [--only NAME]...

Everything runs on systemd 252 and 257, in the containers of tests/lab, and what those cannot show in
its virtual machine. Exits with 1 on FAIL and NOT RUN.
"""

import sys
from collections.abc import Iterator

from showing import ROOT, AtLeast, CannotRunError, Check, Line, Runner, show, tests

FOLDER = "tests/sandbox"
# Of tests/sandbox/test_work.py; each records two figures under its name.
SERVERS = (
    *("everything", "files", "memory", "thinking", "browser"),
    *("time", "git", "fetch", "sqlite"),
)
# A third of the defaults of timeouts.start, and of timeouts.call where the call starts a browser,
# too: a host that is three times as slow still serves them.
COLD_START_MS = dict.fromkeys(SERVERS, 10_000) | {"browser": 20_000}
# Half of limits.memory: the default of 512M, and the 1G that the browser is given.
MEMORY_MIB = dict.fromkeys(SERVERS, 256) | {"browser": 512}
WORK = {f"{name}_cold_start_ms": most for name, most in COLD_START_MS.items()} | {
    f"{name}_memory_mib": most for name, most in MEMORY_MIB.items()
}
# Of tests/sandbox/test_fleet.py. A server may hold twice what it held when it was measured.
FLEET: dict[str, float | AtLeast] = {
    "failed_calls": 0,
    "python_mib_a_server": 96,
    "node_mib_a_server": 64,
    "strict_mib_a_server": 24,
    "mib_of_all_servers": 3072,
    "servers_growth": 1.1,
    "proxy_growth": 1.1,
    "more_descriptors_of_servers": 0,
    "more_descriptors_of_proxy": 0,
    # Otherwise the two after them would be about less than a whole quota.
    "of_cpu_quota_burned": AtLeast(0.8),
    "of_memory_limit_filled": AtLeast(0.8),
    "p99_beside_cpu": 2,
    "p99_beside_memory": 2,
}


def lab(name: str, what: str, marked: str = "lab", **bars: float | AtLeast) -> Check:
    """The tests of a file, in the lab; NOT RUN where the file does not exist yet."""
    path = f"{FOLDER}/{name}"
    check = tests(what, "-m", marked, path, **bars)

    def run(runner: Runner) -> Iterator[Line]:
        if not (ROOT / path).exists():
            raise CannotRunError(f"{path} does not exist yet")
        yield from check(runner)

    return run


CHECKS: dict[str, Check] = {
    "exposure": lab(
        "test_exposure.py",
        "exposure of each profile and network mode",
        offline=0.5,
        online=1.3,
        browser_offline=1.2,
        browser_online=1.7,
    ),
    "report": lab("test_report.py", "forbidden attempts, with their controls", wrong=0),
    "work": lab("test_work.py", "real servers do real work", **WORK),
    "doctor": lab("test_doctor.py", "12 broken servers, each named and mended"),
    "support": lab("test_support.py", "the archive for a report, without secrets"),
    "secrets": lab("test_secrets.py", "a sentinel secret is found nowhere", hits=0),
    "root": lab("test_root.py", "a root of its own, directory or image", exposure=0.3),
    "image": lab("test_image.py", "the sandbox image is the same, byte for byte"),
    "host": lab("test_host.py", "limits, and what their cgroups tell"),
    "facts": lab(
        "test_host_facts.py",
        "what this host keeps of the sandbox, tried",
        promises_tried=AtLeast(13),
    ),
    "disk": lab("test_disk.py", "disk: shown, cleaned, nothing needed goes"),
    "names": lab("test_names.py", "names mode: listed hosts, and no other", exposure=0.5),
    "vm": tests(
        "cgroup v2 and a kernel of its own, tried",
        *("-m", "vm", FOLDER),
        promises_tried=AtLeast(16),
        wrong=0,
    ),
    "fleet": lab("test_fleet.py", "50 active servers for 10 minutes", "lab and soak", **FLEET),
}

if __name__ == "__main__":
    sys.exit(show("show-sandbox", __doc__.splitlines()[0], CHECKS))
