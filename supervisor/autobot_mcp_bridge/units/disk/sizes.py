"""How much of a disk a directory takes: a bounded walk that no server can lead elsewhere."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

# One directory of a server; a large node_modules has 50,000 entries. 200,000 take 1 s or so.
MOST_ENTRIES = 200_000
# Each level holds a descriptor open.
MOST_LEVELS = 64
_BLOCK = 512  # of st_blocks (stat(2))
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes on the disk; `whole` is False where the walk ended at a bound, so there are more."""

    bytes: int = 0
    whole: bool = True

    def __add__(self, other: "Size") -> "Size":
        return Size(self.bytes + other.bytes, self.whole and other.whole)


def size_of(path: Path, most: int = MOST_ENTRIES) -> Size:
    """What lies at and below a directory, hard links once; nothing, where there is none.

    Walks by directory descriptors: a directory that becomes a symlink in mid-walk is not followed,
    and neither are mounts. Blocks.
    """
    try:
        top = os.open(path, _OPEN)
    except OSError:
        return Size()
    walk = _Walk(os.fstat(top).st_dev, most)
    walk.directory(top, MOST_LEVELS)
    return Size(walk.bytes, walk.whole)


class _Walk:
    def __init__(self, device: int, most: int) -> None:
        self.bytes, self.whole = 0, True
        self._device, self._left = device, most
        self._seen: set[int] = set()  # inodes with several names

    def directory(self, descriptor: int, levels: int) -> None:
        """Count it; closes the descriptor."""
        try:
            self._count(os.fstat(descriptor))
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    if self._left <= 0:
                        self.whole = False
                        return
                    self._left -= 1
                    self._entry(descriptor, entry.name, levels)
        except OSError:
            self.whole = False  # it goes while we look
        finally:
            os.close(descriptor)

    def _entry(self, parent: int, name: str, levels: int) -> None:
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                self._count(status)
                return
            if status.st_dev != self._device:
                return
            if levels == 0:
                self.whole = False
                return
            below = os.open(name, _OPEN, dir_fd=parent)
        except OSError:
            return
        self.directory(below, levels - 1)

    def _count(self, status: os.stat_result) -> None:
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            if status.st_ino in self._seen:
                return
            self._seen.add(status.st_ino)
        self.bytes += status.st_blocks * _BLOCK
