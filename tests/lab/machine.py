"""What a test does with a system of its own, a container or a virtual machine."""

import tarfile
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import IO

from lab.commands import Done

# A command that a test runs inside, unless it says otherwise; seconds.
COMMAND_TIMEOUT = 30.0


class Machine(ABC):
    """One that runs."""

    @abstractmethod
    def run(
        self,
        *argv: str,
        stdin: bytes | str | IO[bytes] = b"",
        timeout: float = COMMAND_TIMEOUT,
    ) -> Done:
        """Run a command in it as root.

        Raises:
            LabError: it is not up.
            LabTimeoutError: the command did not end in time; by now it has.
        """

    def check(
        self,
        *argv: str,
        stdin: bytes | str | IO[bytes] = b"",
        timeout: float = COMMAND_TIMEOUT,
    ) -> str:
        """Run a command that must succeed and return what it printed.

        Raises:
            LabError: it is not up, or the command failed.
        """
        return self.run(*argv, stdin=stdin, timeout=timeout).checked().out

    def copy(self, source: Path, target: str, *, timeout: float = COMMAND_TIMEOUT) -> None:
        """Copy a file or a directory in; it belongs to root there, and is called `target`."""
        with tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                archive.add(source, target.lstrip("/"), filter=_of_root)
            packed.seek(0)
            self.check("tar", "-xf", "-", "-C", "/", stdin=packed, timeout=timeout)

    def write(self, target: str, text: str, mode: int = 0o644) -> None:
        """Write a file in it, whose directory is made if it is not there."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "file"
            file.write_text(text, encoding="utf-8")
            file.chmod(mode)
            self.copy(file, target)


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
