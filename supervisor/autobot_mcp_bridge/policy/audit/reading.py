"""The lines of the files again, one by one, however large the files are. Blocks."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.policy.audit.files import NAME
from autobot_mcp_bridge.policy.audit.tail import LONGEST_LINE

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Line:
    """One line and where it stands.

    Attributes:
        number: from 1, within its file.
        data: without its newline; one that is longer than any record comes in pieces.
        whole: whether a newline ends it.
    """

    path: Path
    number: int
    data: bytes
    whole: bool

    @property
    def where(self) -> str:
        return f"{self.path.name}:{self.number}"


def lines(path: Path) -> Iterator[Line]:
    """A file's lines. Raises OSError."""
    number = 0
    with path.open("rb") as file:
        while data := file.readline(LONGEST_LINE):
            number += 1
            yield Line(path, number, data.removesuffix(b"\n"), data.endswith(b"\n"))


def following(directory: Path) -> Iterator[bytes | None]:
    """What is written from now on, into the next files too; None while nothing comes.

    Raises:
        OSError: there is no file yet, or it cannot be read.
    """
    path, rest = directory / NAME, b""
    with ExitStack() as stack:
        file = stack.enter_context(path.open("rb"))
        file.seek(0, os.SEEK_END)
        while True:
            chunk = file.read(_CHUNK)
            rest += chunk
            *whole, rest = rest.split(b"\n")
            yield from whole
            if chunk:
                continue
            if _is_another(path, file.fileno()):  # it was turned over, and read to its end
                stack.close()
                file, rest = stack.enter_context(path.open("rb")), b""
            else:
                yield None


def _is_another(path: Path, fd: int) -> bool:
    try:
        return not os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:  # between the two names
        return False
