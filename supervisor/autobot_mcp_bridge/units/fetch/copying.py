"""Copying a directory that a stranger has filled, as root, so that nothing of theirs stays in it.

Every file becomes a new one of root's. The stranger's processes are gone by then; even if one were
not, all is opened by descriptor and without following links, and only copies count.
"""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from autobot_mcp_bridge.units.packages.job import InstallError

# What one package may hold; the largest ordinary ones (torch, a browser) stay below.
MOST_BYTES = 4 << 30
MOST_FILES = 300_000
MOST_DEPTH = 64
_PIECE = 1 << 20
_PYTHON = re.compile(r"/usr(/local)?/bin/python3(\.\d+)?")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Copy:
    """One copy under way.

    Attributes:
        final: where the copy will lie: absolute links may lead there only.
        owner: whose everything has to be.
        skip: names at the top that are left out.
    """

    final: PurePosixPath
    owner: int
    skip: frozenset[str]
    most_bytes: int = MOST_BYTES
    most_files: int = MOST_FILES
    _bytes: int = 0
    _files: int = 0

    def run(self, source: Path, target: Path) -> None:
        """Copy the directory into another, which is there and empty.

        Raises:
            InstallError: it holds what no package may hold; the message names it.
            OSError: it cannot be read or written.
        """
        from_, to = _open_below(source), os.open(target, _DIRECTORY)
        try:
            self._directory(from_, to, ())
        finally:
            os.close(from_)
            os.close(to)

    def _directory(self, source: int, target: int, parts: tuple[str, ...]) -> None:
        if len(parts) > MOST_DEPTH:
            raise InstallError(f"{'/'.join(parts[:4])}…: more than {MOST_DEPTH} levels")
        with os.scandir(source) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            if parts or name not in self.skip:
                self._entry(source, target, (*parts, name))

    def _entry(self, source: int, target: int, parts: tuple[str, ...]) -> None:
        name = parts[-1]
        status = os.stat(name, dir_fd=source, follow_symlinks=False)
        self._files += 1
        if self._files > self.most_files:
            raise InstallError(f"the package has more than {self.most_files} files")
        if status.st_uid != self.owner:
            raise _refusal(parts, "it belongs to another user")
        if stat.S_ISDIR(status.st_mode):
            from_ = os.open(name, _DIRECTORY, dir_fd=source)
            try:
                os.mkdir(name, 0o755, dir_fd=target)
                to = os.open(name, _DIRECTORY, dir_fd=target)
                try:
                    self._directory(from_, to, parts)
                finally:
                    os.close(to)
            finally:
                os.close(from_)
        elif stat.S_ISLNK(status.st_mode):
            leads = os.readlink(name, dir_fd=source)
            self._check_link(parts, leads)
            os.symlink(leads, name, dir_fd=target)
        elif stat.S_ISREG(status.st_mode):
            self._file(source, target, parts)
        else:
            raise _refusal(parts, "it is neither a file nor a directory")

    def _file(self, source: int, target: int, parts: tuple[str, ...]) -> None:
        name = parts[-1]
        from_ = os.open(name, _FILE, dir_fd=source)
        try:
            status = os.fstat(from_)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != self.owner:
                raise _refusal(parts, "it has changed meanwhile")
            if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
                raise _refusal(parts, "it would change its user when it is run")
            to = os.open(
                name, _NEW, 0o755 if status.st_mode & stat.S_IXUSR else 0o644, dir_fd=target
            )
            try:
                self._bytes_of(from_, to)
                # Python compiles at each start what is newer than its .pyc, or merely of another time.
                os.utime(to, ns=(status.st_mtime_ns, status.st_mtime_ns))
            finally:
                os.close(to)
        finally:
            os.close(from_)

    def _bytes_of(self, source: int, target: int) -> None:
        while piece := os.read(source, _PIECE):
            self._bytes += len(piece)
            if self._bytes > self.most_bytes:
                raise InstallError(f"the package is larger than {self.most_bytes >> 20} MiB")
            view = memoryview(piece)
            while view:
                view = view[os.write(target, view) :]

    def _check_link(self, parts: tuple[str, ...], leads: str) -> None:
        path = PurePosixPath(leads)
        if path.is_absolute():
            inside = path.is_relative_to(self.final) and ".." not in path.parts
            if not inside and not _PYTHON.fullmatch(leads):
                raise _refusal(parts, "it leads out of the package")
            return
        ups = next((n for n, part in enumerate(path.parts) if part != ".."), len(path.parts))
        # ".." behind another word: that word may be a link itself, and then it leads elsewhere.
        if ".." in path.parts[ups:] or ups > len(parts) - 1:
            raise _refusal(parts, "it leads out of the package")


def _refusal(parts: tuple[str, ...], why: str) -> InstallError:
    return InstallError(f"{ascii('/'.join(parts))[1:-1]}: {why}; the package is not taken")


def _open_below(path: Path) -> int:
    """Open a directory; none of the last four of the names on its way may be a link."""
    names = path.parts[-4:]
    descriptor = os.open(path.parents[len(names) - 1], _DIRECTORY)
    for name in names:
        try:
            inner = os.open(name, _DIRECTORY, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor
