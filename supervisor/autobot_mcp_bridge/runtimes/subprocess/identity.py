"""A server's own directory and user: which uid it gets, and that no two servers share one.

The owner of the directory is the record of the uid; nothing else is stored. The calls here block;
they run in the runtime's threads.
"""

import hashlib
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.model.death import Death, DeathCause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.runtimes.base import StartError

# systemd's range for dynamic users (systemd-system.conf documentation, UIDS-GIDS): no package
# and no administrator allocates from it.
FIRST_UID = 61184
LAST_UID = 65519
WORKSPACES = ".workspaces"
_OWN_MODE = 0o700
_PARENT_MODE = 0o711  # the servers pass through, and list nothing


@dataclass(frozen=True, slots=True)
class Home:
    """Where a server lives, and as whom; uid None: as the user that the proxy runs as."""

    path: Path
    uid: int | None
    gid: int | None


def prepare(state_dir: Path, spec: ServerSpec) -> Home:
    """Make the server's directory, or check the one that is there.

    Not safe against itself in two threads: two new servers could choose the same uid.

    Raises:
        StartError: the directory cannot be used; the message says what helps.
    """
    path = state_dir / Path(spec.id.directory)
    try:
        for parent in (state_dir, path.parent.parent, path.parent):
            _make_parent(parent)
        with suppress(FileExistsError):
            path.mkdir(mode=_OWN_MODE)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise refused(f"{path} is not a directory; move it away")
        if os.geteuid() == 0:
            uid, gid = _user(state_dir, spec, path, found.st_uid)
            home = Home(path, uid, gid)
            if found.st_uid != uid:
                _hand_over(path, uid, gid)
        else:
            home = Home(path, None, None)
            if found.st_uid != os.geteuid():
                raise refused(f"{path} belongs to uid {found.st_uid}; move it away")
        if stat.S_IMODE(found.st_mode) != _OWN_MODE:
            path.chmod(_OWN_MODE)
    except OSError as error:
        raise refused(f"its directory {path}: {error.strerror}") from error
    return home


def workspace(state_dir: Path, home: Home, slot: str) -> Home:
    """A directory for one of several processes of a server, empty and to be removed at its end.

    Not below the server's own one, where a stranger could put a link in the way.

    Raises:
        StartError: it cannot be made.
    """
    path = state_dir / WORKSPACES / slot
    try:
        _make_parent(path.parent)
        path.mkdir(mode=_OWN_MODE)
        if home.uid is not None and home.gid is not None:
            os.chown(path, home.uid, home.gid, follow_symlinks=False)
    except OSError as error:
        raise refused(f"its workspace {path}: {error.strerror}") from error
    return Home(path, home.uid, home.gid)


def unshared(uid: int | None) -> int | None:
    """The uid if it is one server's alone, so that it tells whose a process is."""
    return uid if uid is not None and FIRST_UID <= uid <= LAST_UID else None


def refused(detail: str) -> StartError:
    return StartError(Death(DeathCause.EXEC, detail=detail))


def _make_parent(path: Path) -> None:
    try:
        path.mkdir(mode=_PARENT_MODE, parents=True)
        path.chmod(_PARENT_MODE)  # whatever the umask took away
    except FileExistsError:
        found = path.lstat()
        if found.st_uid not in {0, os.geteuid()}:
            # Its owner could exchange the directories below while they are handed over.
            raise refused(
                f"{path} belongs to uid {found.st_uid}, who could exchange what is in it: "
                f"chown {os.geteuid()} {path}"
            ) from None
        if os.geteuid() == 0 and not found.st_mode & stat.S_IXOTH:
            path.chmod(_PARENT_MODE)


def _user(state_dir: Path, spec: ServerSpec, path: Path, owner: int) -> tuple[int, int]:
    if spec.run_as is not None:
        try:
            entry = pwd.getpwnam(spec.run_as)
        except KeyError:
            raise refused(f"run_as: there is no user {spec.run_as!r}") from None
        if entry.pw_uid == 0:
            raise refused("run_as: a server never runs as root")
        return entry.pw_uid, entry.pw_gid
    taken = dict(_owners(state_dir, path))
    if FIRST_UID <= owner <= LAST_UID:
        if owner in taken:
            raise refused(
                f"{path} and {taken[owner]} belong to the same uid {owner}; "
                "give one of them to root (chown -R root:root) and start it again"
            )
        return owner, owner
    uid = _choose(spec.instance, set(taken))
    return uid, uid


def _owners(state_dir: Path, but: Path) -> Iterator[tuple[int, Path]]:
    for path in state_dir.glob("[!.]*/*/*"):
        with suppress(OSError):
            owner = path.lstat().st_uid
            if path != but and FIRST_UID <= owner <= LAST_UID:
                yield owner, path


def _choose(instance: str, taken: set[int]) -> int:
    size = LAST_UID - FIRST_UID + 1
    first = int.from_bytes(hashlib.sha256(instance.encode()).digest()[:8], "big")
    for step in range(size):
        uid = FIRST_UID + (first + step) % size
        if uid not in taken and not _is_user(uid):
            return uid
    raise refused(f"all uids from {FIRST_UID} to {LAST_UID} are taken")


def _is_user(uid: int) -> bool:
    # With nss-systemd this also sees the dynamic users of running units.
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _hand_over(path: Path, uid: int, gid: int) -> None:
    if any(path.iterdir()):
        # Never a recursive chown: slow on node_modules, and a way to get others' files (S13).
        raise refused(
            f"{path} belongs to uid {path.lstat().st_uid} and is not empty: "
            f"chown -R {uid}:{gid} {path}"
        )
    os.chown(path, uid, gid, follow_symlinks=False)
