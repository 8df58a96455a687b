"""Running programs of the host: always with a bound, never with a terminal or an open stdin."""

import fcntl
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.problems import LabError, LabTimeoutError
from support.waiting import PATIENCE, until

# Programs such as ip and rmdir answer at once; a busy machine may need longer.
TOOL_TIMEOUT = 30.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PLAIN = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/root"}


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left: its status (negative: the signal that ended it) and its output."""

    argv: tuple[str, ...]
    status: int
    out: str
    err: str

    def checked(self) -> "Done":
        """Return this, if the command succeeded.

        Raises:
            LabError: it did not; the message holds the command and its output.
        """
        if self.status != 0:
            text = "\n".join(part for part in (self.out[-4000:], self.err[-4000:]) if part)
            raise LabError(f"status {self.status} of {shlex.join(self.argv)}\n{text}")
        return self


def tool(
    *argv: str | Path,
    timeout: float = TOOL_TIMEOUT,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> Done:
    """Run a program of the host to its end.

    Raises:
        LabError: it is not there.
        LabTimeoutError: it did not end in time.
    """
    words = tuple(str(word) for word in argv)
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            env=dict(env or PLAIN),
            capture_output=True,
            timeout=timeout * PATIENCE,
            pass_fds=pass_fds,
            check=False,
        )
    except FileNotFoundError as error:
        raise LabError(f"{words[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise LabTimeoutError(f"not done within {timeout:g} s: {shlex.join(words)}") from error
    return Done(words, done.returncode, _text(done.stdout), _text(done.stderr))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


@contextmanager
def locked(path: Path, *, within: float) -> Iterator[None]:
    """Hold the lock of this file; it is free again when this process ends.

    Raises:
        LabTimeoutError: another process held it all the time.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not until(lambda: lock_now(descriptor), within=within):
            raise LabTimeoutError(f"another process holds {path.name} for more than {within:g} s")
        yield
    finally:
        os.close(descriptor)


def lock_now(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(path: Path) -> bool:
    """Tell whether a process holds the lock of this file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not lock_now(descriptor)
    finally:
        os.close(descriptor)
