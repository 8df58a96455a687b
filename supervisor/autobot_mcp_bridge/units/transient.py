"""Programs in transient units (systemd-run(1)): what root asks, and does not run itself."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autobot_mcp_bridge.units.systemctl import ENVIRONMENT

# Seconds from the unit's own limit to the end of whoever waits: a busy host starts units slowly.
MARGIN = 30.0
MOST_SAID = 1000  # bytes of what a program said last
_RUN = ("systemd-run", "--quiet", "--pipe", "--wait", "--collect")


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a program.

    Attributes:
        status: systemd-run's, which is the program's.
        answer: the beginning of its stdout.
        said: the end of its stderr, or of systemd-run's.
    """

    status: int
    answer: bytes
    said: str


def run(
    program: Sequence[str],
    properties: Mapping[str, str],
    *,
    seconds: float,
    most: int,
    unit: str | None = None,
    given: bytes = b"",
) -> Done:
    """Run a program in a unit of its own, and wait for it. Blocks.

    Args:
        program: its words, the first of them a path.
        properties: of the unit, but for RuntimeMaxSec=.
        seconds: which the unit has.
        most: bytes of its answer that are held.
        unit: its name; None: one that systemd makes up.
        given: its stdin.

    Raises:
        OSError: systemd-run could not be started.
        subprocess.TimeoutExpired: it did not end.
    """
    options = [f"--property={name}={text}" for name, text in properties.items()]
    options.append(f"--property=RuntimeMaxSec={seconds:g}")
    if unit is not None:
        options.append(f"--unit={unit}")
    return bounded([*_RUN, *options, "--", *program], seconds + MARGIN, most, given)


def bounded(words: Sequence[str], seconds: float, most: int, given: bytes = b"") -> Done:
    """Run a command whose output stays in files, but for what is asked for (raises as `run`)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        done = subprocess.run(
            words,
            input=given,
            stdout=out,
            stderr=err,
            env=ENVIRONMENT,
            timeout=seconds,
            check=False,
        )
        out.seek(0)
        err.seek(max(0, err.seek(0, os.SEEK_END) - MOST_SAID))
        said = err.read(MOST_SAID).decode("utf-8", "replace").strip()
        return Done(done.returncode, out.read(most), said)
