"""Whether a file holds what root alone has put there, and what others cannot read."""

import errno
import os
import stat
from collections import deque
from pathlib import Path

ROOT = Path("/")
MOST_LINKS = 40  # as the kernel follows (path_resolution(7))
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
_ACL = "system.posix_acl_access"


def distrust(path: Path, *, owner: int = 0) -> str:
    """Why the file is not to be trusted with a secret, with the command that helps; empty: it is.

    Each directory and symbolic link on its way is judged as well: whoever may write one of them
    decides what the file is. An access control list is refused, since it may let in more than the
    mode shows (acl(5)).

    Args:
        path: absolute.
        owner: the uid that has to own all of it; root's.
    """
    place, left, links = ROOT, deque(path.relative_to(ROOT).parts), 0
    try:
        if clause := _directory(place, owner):
            return clause
        while left:
            name = left.popleft()
            if name == "..":
                place = place.parent
                continue
            entry = place / name
            mode = entry.lstat().st_mode
            if stat.S_ISLNK(mode):
                links += 1
                if links > MOST_LINKS:
                    return f"{path}: {os.strerror(errno.ELOOP)}"
                # The directory that it stands in is trusted: nobody else has made or moved it.
                target = entry.readlink()
                if target.is_absolute():
                    place, target = ROOT, target.relative_to(ROOT)
                left.extendleft(reversed(target.parts))
                continue
            if clause := _directory(entry, owner) if left else _file(entry, owner):
                return clause
            place = entry
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return "" if stat.S_ISREG(place.stat().st_mode) else f"{path}: allowed is a regular file"


def roots_own(path: Path) -> Path | None:
    """The file that the path means, without links, if only root can put another one there.

    Others may read it. What is checked may be used as root only by the path that is returned: the
    one that was asked for may lead elsewhere in the next moment.
    """
    file = Path(os.path.realpath(path))
    return None if others_place(file) else file


def others_place(file: Path) -> str:
    """The first of a file and of the directories above it that others may write; empty: none.

    In a directory with the sticky bit (/tmp) they may not exchange what is root's (inode(7)).
    """
    for place in (*reversed(file.parents), file):
        status = place.stat()
        sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
        if status.st_uid != 0 or (status.st_mode & _WRITABLE and not sticky):
            return str(place)
    return ""


def _directory(place: Path, owner: int) -> str:
    status = place.stat()
    if not stat.S_ISDIR(status.st_mode):
        return f"{place}: {os.strerror(errno.ENOTDIR)}"
    return _others(place, status, owner, _WRITABLE, "go-w")


def _file(place: Path, owner: int) -> str:
    status = place.stat()
    if not stat.S_ISREG(status.st_mode):
        return f"{place}: allowed is a regular file"
    return _others(place, status, owner, _WRITABLE | stat.S_IROTH, "g-w,o-rw")


def _others(place: Path, status: os.stat_result, owner: int, refused: int, change: str) -> str:
    if status.st_uid != owner:
        return f"{place}: it must belong to root; run: chown root {place}"
    if status.st_mode & refused:
        what = "read or write" if refused & stat.S_IROTH else "write"
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        return f"{place}: others may {what} it (mode {mode}); run: chmod {change} {place}"
    if _ACL in os.listxattr(place):
        return f"{place}: it has an access control list; run: setfacl --remove-all {place}"
    return ""
