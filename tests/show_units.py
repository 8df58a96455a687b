"""Show what servers as units promise, a line each: what, figure, bar, PASS, FAIL or NOT RUN.

    python tests/show_units.py [--only NAME]...

Everything runs on systemd 252 and 257, in the containers of tests/lab. Exits with 1 on FAIL and
NOT RUN.
"""

import os
import sys

from lab import recipe
from show_chaos import chaos
from showing import AtLeast, Check, show, tests

# How long a stopped server is called on, and how many bursts of starts the watcher sees.
os.environ.setdefault("MCP_BRIDGE_STOPPED_FOR", "30")
os.environ.setdefault("MCP_BRIDGE_WATCHER_ROUNDS", "17")


def lab(what: str, *selection: str, **bars: float | AtLeast) -> Check:
    files = [
        word if word.startswith("-") or "/" in word else f"tests/systemd/{word}.py"
        for word in selection
    ]
    return tests(what, "-m", "lab", *files, **bars)


CHECKS: dict[str, Check] = {
    "real": lab("the examples, from npm and PyPI, as units", "test_real"),
    "cold": lab("a start's cost beyond the bare server's", "test_cold", extra_ms=300),
    "sandbox": lab("forbidden attempts, each with its control", "test_sandbox", "test_identity"),
    "escape": lab("words and variables, byte for byte", "test_escape"),
    "launcher": lab("the launcher and the record of ends", "test_launch", "test_ended"),
    "administrator": lab(
        "stop, restart, disable, mask, reboot, 8 deaths", "test_administrator", "test_typed"
    ),
    "left-out": lab("a server that lacks something holds up no other", "test_left_out"),
    "runtime": lab("a server's life, crashes and breaker", "test_runtime"),
    "watcher": lab("states and ends, with either D-Bus library", "test_watcher"),
    "bursts": lab(
        "crashes in bursts",
        "test_bursts",
        trivial_starts=AtLeast(2000),
        sandboxed_starts=AtLeast(200),
        trivial_crashes_not_counted=0,
        trivial_descriptors_more=0,
        sandboxed_crashes_not_counted=0,
        sandboxed_descriptors_more=0,
    ),
    "restart": lab("restart and SIGKILL of the proxy", "test_restart"),
    "scale": lab("500 servers", "test_scale", apply_seconds=20),
    "install": lab("install, apply, fetch", "test_install", "test_product", "test_fetch"),
    "chaos": chaos({f"chaos, {version}": suite for suite, version in recipe.SUITES.items()}),
    "upgrade": lab("upgrade under use, and back", "test_upgrade"),
    "live": lab("npx and uvx themselves as servers, in a weaker sandbox", "test_live"),
}

if __name__ == "__main__":
    sys.exit(show("show-units", __doc__.splitlines()[0], CHECKS))
