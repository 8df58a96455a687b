"""A server's command with another program before or behind it."""

import shutil
from collections.abc import Iterator, Sequence

from autobot_mcp_bridge.diagnosis import changes
from autobot_mcp_bridge.diagnosis.changes import Change
from autobot_mcp_bridge.diagnosis.original import Original
from autobot_mcp_bridge.model.finding import Finding
from autobot_mcp_bridge.units import escape
from autobot_mcp_bridge.units.render import LITERAL
from autobot_mcp_bridge.units.sandbox import image
from autobot_mcp_bridge.units.sandbox.confinement import Facts

# Leaves out lines without an object, and what stands before one.
_FILTER = """"$0" "$@" | exec sed --unbuffered --quiet 's/^[^{]*{/{/p'"""
_UNBUFFERED = "PYTHONUNBUFFERED"
MOST_NOISE = 60  # characters of it that are shown
BUFFERED = "answers, but its answers stay in a buffer of its own until its stdin is closed"
FLUSH = "have it flush stdout after each line"
STDERR = "have it write that to stderr"


def noisy(noise: str) -> str:
    """The clause about a line of stdout that is no JSON-RPC, with its first bytes."""
    shown = noise.partition("{")[0].rstrip()[:MOST_NOISE] or noise[:MOST_NOISE]
    return f"writes {shown!r} to its stdout, which is for JSON-RPC alone"


def filtered(original: Original, noise: str) -> Change:
    """Its stdout with JSON alone."""
    lines = _start(original, ("/bin/sh", "-c", _FILTER, *original.argv))
    return Change(Finding.STDOUT_NOISE, noisy(noise), lines)


def flushing(original: Original) -> Iterator[Change]:
    """What has programs flush their stdout after each line, the likeliest first."""
    if not original.spec.env.get(_UNBUFFERED, "1"):
        yield changes.variable(_UNBUFFERED, "1", Finding.STDOUT_BUFFERED, BUFFERED)
    if (stdbuf := shutil.which("stdbuf", path="/usr/bin:/bin")) is not None:
        lines = _start(original, (stdbuf, "-oL", *original.argv))
        yield Change(Finding.STDOUT_BUFFERED, BUFFERED, lines)


def named(change: Change) -> str:
    """For a line of progress."""
    return "with PYTHONUNBUFFERED=1" if change.key else "with stdbuf -oL"


def _start(original: Original, argv: Sequence[str]) -> tuple[str, str]:
    """The directives that start other words by the launcher (templates/launch.py)."""
    facts = Facts()
    launcher = image.LAUNCHER if original.spec.root is not None else facts.launcher
    words = (facts.python, "-I", "-S", launcher, *map(escape.word, argv))
    return "ExecStart=", f"ExecStart={LITERAL}{' '.join(words)}"
