"""One install: its programs run in the caller's environment, with a log, a deadline and a stop."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# A whole install, everything it has to fetch first included; a cold registry behind a slow line
# has been seen to need ten minutes for one package.
INSTALL_DEADLINE = 1200.0
# How often a running program is looked at for its end, a cancel or the deadline.
LOOK = 0.2
# From SIGTERM to SIGKILL for a program that is cancelled.
KILL_AFTER = 3.0
LAST_LINES = 6
LAST_BYTES = 4096
UMASK = 0o022  # the store is read by other uids


class InstallError(Exception):
    """An install that failed; the message says why, with the last lines of its log."""


class CancelledInstallError(InstallError):
    """The install was asked to end; there is no cause to be told."""


@dataclass(eq=False, slots=True)
class Job:
    """The frame of one install. Its methods block: use them in a thread of their own.

    Attributes:
        log: everything the programs print.
        environ: the caller's whole environment: an install is the person's own command, with
            their proxies, registries and certificates.
        seconds: how long it may take as a whole.
        deadline: the same on the monotonic clock.
    """

    log: Path
    environ: Mapping[str, str]
    seconds: float = INSTALL_DEADLINE
    deadline: float = field(init=False)
    cancelled: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.seconds

    def check(self, late: str) -> None:
        """Tell whether the job may go on.

        Raises:
            InstallError: it may not.
        """
        if self.cancelled.is_set():
            raise CancelledInstallError("cancelled")
        if time.monotonic() > self.deadline:
            why = f"{late}; the next try goes on with what was downloaded"
            raise InstallError(f"not done after {self.seconds:.0f} s: {why}")

    def note(self, text: str) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(text + "\n")

    def run(self, argv: Sequence[str | Path], *, env: Mapping[str, str], cwd: Path) -> str:
        """Run a program to its end; what it wrote to stdout.

        Raises:
            InstallError: it could not be started, failed, or ran into the deadline.
        """
        words = [str(word) for word in argv]
        output = self.log.with_name(f"{self.log.name}.{threading.get_ident()}.out")
        self.note(f"$ {shlex.join(words)}")
        began = self.log.stat().st_size
        try:
            with output.open("wb") as out, self.log.open("ab") as err:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=dict(env),
                    cwd=cwd,
                    start_new_session=True,
                    umask=UMASK,
                )
                self._wait(process, words[0])
            text = output.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise InstallError(f"{words[0]}: cannot be started: {error.strerror}") from error
        finally:
            output.unlink(missing_ok=True)
        if process.returncode != 0:
            self.note(text)
            raise InstallError(f"{Path(words[0]).name} {_ending(process)}{self._last_lines(began)}")
        return text

    def _wait(self, process: subprocess.Popen[bytes], name: str) -> None:
        try:
            while True:
                try:
                    process.wait(LOOK)
                    return
                except subprocess.TimeoutExpired:
                    self.check(f"{Path(name).name} was still running")
        finally:
            if process.returncode is None:
                _end_group(process)

    def _last_lines(self, began: int) -> str:
        """What this program wrote last; the log holds those before it too."""
        with self.log.open("rb") as log:
            log.seek(max(began, log.seek(0, os.SEEK_END) - LAST_BYTES))
            text = log.read().decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return f": {' | '.join(lines[-LAST_LINES:])} (log: {self.log})"


def without_log(text: str) -> str:
    """The message of an InstallError whose log is gone when anybody reads it."""
    return re.sub(r" \(log: [^)]*\)", "", text)


def _ending(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"exited with status {code}"


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the program with all that it started: npm's and pip's children are in its group."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(KILL_AFTER)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
