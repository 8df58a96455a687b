"""Show what connecting promises, a line each: what, figure, bar, PASS, FAIL or NOT RUN.

    python tests/show_connect.py [--only NAME]...

What concerns units runs on systemd 252 and 257, in the containers of tests/lab. Exits with 1 on FAIL
and NOT RUN.
"""

import sys
from collections.abc import Iterator

from showing import ROOT, AtLeast, CannotRunError, Check, Line, Runner, show, tests

FOLDER = "tests/connect"


def of_file(what: str, name: str, *options: str, **bars: float | AtLeast) -> Check:
    """The tests of a file; NOT RUN where the file does not exist yet."""
    path = f"{FOLDER}/{name}"
    check = tests(what, *options, path, **bars)

    def run(runner: Runner) -> Iterator[Line]:
        if not (ROOT / path).exists():
            raise CannotRunError(f"{path} does not exist yet")
        yield from check(runner)

    return run


CHECKS: dict[str, Check] = {
    "import": of_file(
        "configuration files of clients are imported",
        "test_import.py",
        files=AtLeast(20),
        entries_unaccounted=0,
        sentinels_outside_the_store=0,
        changed_by_a_second_import=0,
    ),
    "import-units": of_file(
        "imported servers as units, with their secrets", "test_import_units.py", "-m", "lab"
    ),
    "client": of_file("snippets are written, the rest is kept", "test_client.py"),
    "snippets": of_file(
        "snippets drive the clients that they are for", "test_snippets.py", clients=AtLeast(7)
    ),
    "stdio": of_file("the conformance suite through the stdio shim", "test_stdio.py"),
    "upstream": of_file("servers by url: list, call, progress, cancel", "test_upstream.py"),
    "addresses": of_file("private addresses and redirects are refused", "test_addresses.py"),
    "tls": of_file(
        "a renewed certificate, 200 open streams", "test_tls.py", lost_streams=0, failed_calls=0
    ),
    "tls-units": of_file(
        "a renewed certificate, the proxy as a unit",
        "test_tls_units.py",
        "-m",
        "lab",
        lost_streams=0,
    ),
    "fronts": of_file("nginx and Caddy in front", "test_fronts.py", failed_calls=0),
    "fronts-long": of_file(
        "90 s of silence, 120 s of an idle stream", "test_fronts.py", "-m", "soak"
    ),
    "shells": of_file("completion and man pages", "test_shells.py"),
    "units": of_file("the same of units of systemd", "test_units.py", "-m", "lab"),
}

if __name__ == "__main__":
    sys.exit(show("show-connect", __doc__.splitlines()[0], CHECKS))
