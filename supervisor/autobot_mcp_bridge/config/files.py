"""Reading and replacing files: bounded, checked, whole."""

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from autobot_mcp_bridge.config.errors import UnavailableError

MAX_BYTES = 4 << 20
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
LOCK_SECONDS = 30.0  # an edit syncs twice, and a busy disk takes a second for each
LOCK_POLL_SECONDS = 0.02


class RefusedFileError(Exception):
    """The file is there but must not, or cannot, be used; the message is a clause that says why."""


def read_bounded(path: Path, most: int = MAX_BYTES) -> bytes:
    """Read a configuration file of `most` bytes whole.

    Raises:
        FileNotFoundError: it does not exist.
        RefusedFileError: it is no regular file, too large, unreadable, or open to others.
    """
    try:
        # O_NONBLOCK: a FIFO in the place of a file must not hang the reader.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RefusedFileError(f"cannot be read: {error.strerror}") from error
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise RefusedFileError("allowed is a regular file")
        refuse_open_mode(path, status)
        with os.fdopen(fd, "rb", closefd=False) as file:
            data = file.read(most + 1)
    finally:
        os.close(fd)
    if len(data) > most:
        raise RefusedFileError(f"allowed are at most {most >> 20} MiB")
    return data


def refuse_open_mode(path: Path, status: os.stat_result) -> None:
    """Refuse what group or others may write, when running as root: they would command root.

    Raises:
        RefusedFileError: they may.
    """
    if os.geteuid() == 0 and status.st_mode & WRITABLE_BY_OTHERS:
        raise RefusedFileError(f"group or others may write it; chmod go-w {path}")


def replace_file(path: Path, data: bytes, mode: int) -> None:
    """Replace the file at once: after a crash it is the old one or the new one, never a half.

    An existing file keeps its owner. A symlink stays: the file that it names is replaced.
    """
    target = Path(os.path.realpath(path))
    fd, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            os.fchmod(fd, mode)
            with contextlib.suppress(FileNotFoundError, PermissionError):
                old = target.stat()
                if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(fd, old.st_uid, old.st_gid)
            file.write(data)
            file.flush()
            os.fsync(fd)
        os.replace(name, target)  # noqa: PTH105 - both names are plain
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise
    sync_directory(target.parent)


def remove_file(path: Path) -> bool:
    """Remove the file for good; False if there was none."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    sync_directory(path.parent)
    return True


def sync_directory(path: Path) -> None:
    """Make a rename or removal in it durable (fsync(2): the file's own fsync does not)."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def private_directory(path: Path) -> int:
    """Make the directory, 0700; its parents as the umask says. The mode for a file in it.

    One with the set-group-ID bit was made for its group to read (inode(7)), and stays so.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode)
    allowed = 0o2750 if mode & stat.S_ISGID else 0o700
    if mode != allowed:
        path.chmod(allowed)
    return 0o640 if mode & stat.S_ISGID else 0o600


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory for one editor at a time; readers need no lock, files change at once.

    Blocks for up to LOCK_SECONDS: for commands, not for an event loop.

    Raises:
        UnavailableError: another editor held it for the whole time.
    """
    deadline = time.monotonic() + LOCK_SECONDS
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise UnavailableError(f"{directory}: another command holds it") from None
                time.sleep(LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(fd)
