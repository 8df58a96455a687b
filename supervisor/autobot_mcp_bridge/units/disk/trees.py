"""Walking and deleting what strangers have filled: servers' directories, and what installs leave."""

import errno
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

# Ten million files take some minutes; a file system that hangs must not hold whoever waits for ever.
REMOVE_WITHIN = 3600.0
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def entries_below(path: Path, levels: int) -> Iterator[tuple[Path, os.stat_result]]:
    """What lies below a directory, at most so many levels deep: its path, and its status.

    By directory descriptors: one that becomes a symlink meanwhile leads nowhere. What goes while we
    look is left out. Blocks.
    """
    try:
        descriptor = os.open(path, _DIRECTORY)
    except OSError:
        return
    yield from _below(descriptor, path, levels)


def _below(descriptor: int, path: Path, levels: int) -> Iterator[tuple[Path, os.stat_result]]:
    """Closes the descriptor."""
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                try:
                    status = os.stat(entry.name, dir_fd=descriptor, follow_symlinks=False)
                except OSError:
                    continue
                yield path / entry.name, status
                if stat.S_ISDIR(status.st_mode) and levels > 1:
                    try:
                        inner = os.open(entry.name, _DIRECTORY, dir_fd=descriptor)
                    except OSError:
                        continue
                    yield from _below(inner, path / entry.name, levels - 1)
    except OSError:
        return
    finally:
        os.close(descriptor)


def remove_tree(path: Path) -> None:
    """Delete a directory with all that is in it, or nothing if it is not there. Blocks.

    By rm(1): a tree may be deeper than there are descriptors or frames for `shutil.rmtree`. It
    follows no link, not even one that comes meanwhile, and leaves no file system.

    Raises:
        OSError: something of it is still there.
    """
    # What it says of each file that it leaves could be as long as the tree is large.
    quiet = subprocess.DEVNULL
    words = ("rm", "-rf", "--one-file-system", "--", os.fspath(path))
    try:
        done = subprocess.run(
            words, stdin=quiet, stdout=quiet, stderr=quiet, timeout=REMOVE_WITHIN, check=False
        )
    except subprocess.TimeoutExpired:
        why = f"not removed within {REMOVE_WITHIN:g} s"
        raise OSError(errno.ETIMEDOUT, why, os.fspath(path)) from None
    if done.returncode != 0:
        raise OSError(errno.ENOTEMPTY, f"rm(1) ended with {done.returncode}", os.fspath(path))
