"""A command within a container: in its cgroups and namespaces, and never longer than allowed."""

import secrets
import shlex
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from lab import cgroups
from lab.commands import PLAIN
from lab.problems import LabError, LabTimeoutError
from support.waiting import PATIENCE

if TYPE_CHECKING:
    from lab.containers import Container

# Outside of the container's own cgroups the command could not even reload the systemd in there.
_SCRIPT = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit; shift; done; shift; exec "$@"'
# The last step is taken inside: a kill of the command's folder must spare nsenter, which has to
# reap it. A zombie that waits for some reaper outside holds up a reboot for 10 s.
_INSIDE = 'echo $$ > "$0" || exit; exec "$@"'
_INTO = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd")


class Command:
    """A running command; leaving the block ends it with everything that it has started."""

    def __init__(self, process: subprocess.Popen[bytes], argv: Sequence[str], folder: Path) -> None:
        self._process = process
        self._argv = argv
        # A folder of its own in the v2 tree, where one write kills all of its processes.
        self._folder = folder
        self._in_time = False

    @property
    def status(self) -> int:
        return self._process.returncode

    def communicate(self, stdin: bytes | None, timeout: float) -> tuple[bytes, bytes]:
        """Feed it, and return all that it writes.

        Raises:
            LabTimeoutError: it did not end in time; by now it has.
        """
        try:
            done = self._process.communicate(stdin, timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            self._kill()
            out, err = self._process.communicate()
            text = b"\n".join(filter(None, (out, err)))[-3000:].decode("utf-8", "replace")
            what = shlex.join(self._argv)
            raise LabTimeoutError(f"not done within {timeout:g} s: {what}\n{text}") from None
        self._in_time = True
        return done

    def wait(self, timeout: float) -> int:
        """Wait for its end when it has the caller's own streams.

        Raises:
            LabTimeoutError: it did not end in time; by now it has.
        """
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise LabTimeoutError(f"not done within {timeout:g} s") from None
        self._in_time = True
        return status

    def _kill(self) -> None:
        with suppress(FileNotFoundError):
            (self._folder / "cgroup.kill").write_text("1", encoding="utf-8")
        try:
            self._process.wait(cgroups.GONE_WITHIN)
        except subprocess.TimeoutExpired:  # it had not come as far as to its folder
            self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._in_time:
            self._kill()
            self._process.__exit__(kind, error, trace)
        # What a command in time has left in the background goes on, and so does its folder.
        with suppress(OSError):
            self._folder.rmdir()


def start(
    container: "Container", argv: Sequence[str], stdin: int | IO[bytes] | None, *, own: bool = True
) -> Command:
    """Start a command as root; `own` says whether it writes to pipes or to the caller's streams.

    Raises:
        LabError: the container is not up.
    """
    state = container.state()
    if state is None or not state.leader:
        raise LabError(f"{container.name} is not up")
    try:
        roots = cgroups.roots(state.leader)
    except FileNotFoundError as error:
        raise LabError(f"{container.name} has just ended") from error
    folder = roots.pop("unified") / f"lab-{secrets.token_hex(4)}"
    folder.mkdir()
    entrances = [str(path / "cgroup.procs") for path in (*roots.values(), folder.parent)]
    enter = ["nsenter", f"--target={state.leader}", *_INTO, "--"]
    own_folder = cgroups.ROOT / "unified" / folder.name / "cgroup.procs"  # as seen inside
    where = subprocess.PIPE if own else None
    process = subprocess.Popen(
        [
            "sh",
            "-c",
            _SCRIPT,
            "sh",
            *entrances,
            "--",
            *enter,
            "sh",
            "-c",
            _INSIDE,
            str(own_folder),
            *argv,
        ],
        stdin=stdin,
        stdout=where,
        stderr=where,
        env={**PLAIN, **container.spec.variables},
    )
    return Command(process, argv, folder)
