"""The file of the lines: appended to, turned over by size, gone on with after any end. Blocks.

`audit.jsonl` is written; `audit.jsonl.1` is the file before, and so on. `head` tells how far the
chain had come, so that lines that are cut off the end are missed, too.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.config.errors import UnavailableError
from autobot_mcp_bridge.policy.audit import tail
from autobot_mcp_bridge.policy.audit.chain import Chain, Link

NAME = "audit.jsonl"
HEAD = "head"
# Before the name of what was found behind the last whole line, which a power cut leaves.
TORN = "torn-"
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class Torn:
    """Bytes of a line that never came to its end, and the file that they are in now."""

    size: int
    kept: str


def rotated(directory: Path) -> Iterator[tuple[int, Path]]:
    """The files before the one that is written, newest first."""
    found = {}
    for path in directory.glob(f"{NAME}.*"):
        suffix = path.name.removeprefix(f"{NAME}.")
        if suffix.isdecimal():
            found[int(suffix)] = path
    yield from sorted(found.items())


def files(directory: Path) -> list[Path]:
    """All of them that exist, oldest first."""
    current = directory / NAME
    return [path for _, path in reversed([*rotated(directory)])] + [current] * current.exists()


class AuditFile:
    """One directory's files, for one writer.

    Attributes:
        chain: where it goes on, once `open` has found out.
        torn: what `open` has put aside.
    """

    def __init__(self, directory: Path, max_bytes: int, backups: int) -> None:
        self._directory = directory
        self._path = directory / NAME
        self._max_bytes = max_bytes
        self._backups = backups
        self._fd = -1
        self._head = -1
        self._size = 0
        self.chain = Chain()
        self.torn: Torn | None = None
        self.failure: OSError | None = None

    def open(self) -> None:
        """Find the end of the chain.

        Raises:
            OSError: the files cannot be made or read.
            UnavailableError: another process writes them.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._directory.stat().st_uid == os.geteuid():
            self._directory.chmod(0o700)
        self.close()
        self._head = _open(self._directory / HEAD, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(self._head, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = f"another process writes {self._directory}: one proxy is enough"
            raise UnavailableError(text) from None
        self._begin()
        self._put_torn_aside()
        last = tail.last_line(self._fd)
        if last is None:
            last = next((tail.last_line_of(path) for _, path in rotated(self._directory)), None)
        link = Link.read(last) if last is not None else None
        if link is not None:  # else a new chain; `verify` tells of whatever stands before it
            self.chain = Chain(link.seq, link.digest)

    def write(self, lines: Sequence[bytes]) -> int:
        """Append lines, turning the file over between two of them; how many are written.

        Less than all only together with what `failure` says; then nothing of the next one is there.
        """
        self.failure = None
        done = 0
        try:
            while done < len(lines):
                done += self._write_some(lines, done)
            self._note_head(lines[done - 1])
        except OSError as error:
            self.failure = error
        return done

    def _write_some(self, lines: Sequence[bytes], begin: int) -> int:
        """As many as fit into this file, at least one."""
        if self._fd < 0:
            self._begin()
        if self._size and self._size + len(lines[begin]) > self._max_bytes:
            self._turn_over()
        end, size = begin, 0
        while end < len(lines) and (
            end == begin or self._size + size + len(lines[end]) <= self._max_bytes
        ):
            size += len(lines[end])
            end += 1
        data = b"".join(lines[begin:end])
        try:
            written = os.write(self._fd, data)
        except OSError:
            self._cut_back()
            raise
        if written < size:  # the disk has just become full
            self._cut_back()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        self._size += size
        return end - begin

    def _cut_back(self) -> None:
        """Leave no part of a line behind."""
        with suppress(OSError):
            os.ftruncate(self._fd, self._size)

    def _turn_over(self) -> None:
        """Begin a new file; the chain goes on in it."""
        os.fsync(self._fd)
        os.close(self._fd)
        self._fd = -1
        for number, path in reversed([*rotated(self._directory)]):
            if number >= self._backups:
                path.unlink()
            else:
                path.rename(self._directory / f"{NAME}.{number + 1}")
        self._path.rename(self._directory / f"{NAME}.1")
        self._begin()

    def _begin(self) -> None:
        self._fd = _open(self._path, _FLAGS)
        self._size = os.fstat(self._fd).st_size

    def _note_head(self, line: bytes) -> None:
        link = Link.read(line[:-1])
        if link is not None:
            os.pwrite(self._head, b"%020d %s\n" % (link.seq, link.digest.encode()), 0)

    def _put_torn_aside(self) -> None:
        """A line without its end was never whole: keep its bytes, and out of the chain."""
        at = tail.end_of_last_line(self._fd)
        if at == self._size:
            return
        rest = os.pread(self._fd, min(self._size - at, tail.LONGEST_LINE), at)
        name = f"{TORN}{time.time_ns()}"
        kept = _open(self._directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        try:
            os.write(kept, rest)
        finally:
            os.close(kept)
        os.ftruncate(self._fd, at)
        self.torn = Torn(self._size - at, name)
        self._size = at

    def close(self) -> None:
        for fd in (self._fd, self._head):
            if fd >= 0:
                os.close(fd)
        self._fd = self._head = -1


def _open(path: Path, flags: int) -> int:
    """Open a file for its owner alone; one of ours that others could read is closed to them."""
    fd = os.open(path, flags, 0o600)
    status = os.fstat(fd)
    try:
        if not stat.S_ISREG(status.st_mode):
            raise UnavailableError(f"{path}: allowed is a regular file")
        if status.st_uid == os.geteuid() and status.st_mode & 0o177:
            os.fchmod(fd, 0o600)
    except BaseException:
        os.close(fd)
        raise
    return fd
