"""Whether a server's uid could use what its definition names on this host; and what would help.

A unit whose paths its uid cannot pass starts, and then fails in ways that its author never saw.
Access control lists are not read: a path that has one is believed to be in reach.
"""

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.config.problem import json_path
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.sandbox.confinement import HOMES

_ACL = "system.posix_acl_access"
# By the class of a uid toward a file: how far its bits are shifted, and chmod's letter for it.
_OWNER, _GROUP, _OTHER = (6, "u"), (3, "g"), (0, "o")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a server runs as; a dynamic uid owns nothing yet."""

    uid: int | None
    gids: frozenset[int]

    def class_of(self, status: os.stat_result) -> tuple[int, str]:
        if self.uid is not None and status.st_uid == self.uid:
            return _OWNER
        return _GROUP if status.st_gid in self.gids else _OTHER


def refusals(spec: ServerSpec) -> Iterator[str]:
    """Each thing that this host cannot give the server: JSON path, clause, the command that helps.

    Blocks (disk, and the databases of users and groups).
    """
    gids = set()
    for index, name in enumerate(spec.groups):
        try:
            gids.add(grp.getgrnam(name).gr_gid)
        except KeyError:
            place = json_path(("groups", index))
            yield f"{place}: there is no group {name}; run: groupadd --system {name}"
    uid = None
    if spec.run_as is not None:
        try:
            user = pwd.getpwnam(spec.run_as)
        except KeyError:
            yield (
                f"{json_path(('run_as',))}: there is no user {spec.run_as}; "
                f"run: useradd --system {spec.run_as}"
            )
            return
        uid = user.pw_uid
        gids |= {user.pw_gid, *os.getgrouplist(spec.run_as, user.pw_gid)}
    identity = Identity(uid, frozenset(gids))
    for key, wanted in (("read", "r"), ("write", "rw")):
        for index, text in enumerate(getattr(spec.paths, key)):
            clause = _blocked(Path(text), wanted, identity)
            if clause:
                yield f"{json_path(('paths', key, index))}: {clause}"


def _blocked(path: Path, wanted: str, identity: Identity) -> str:
    """Why the path is out of reach; empty when it is not."""
    # The way through the homes is made anew in the sandbox, for everybody.
    way = [] if any(path.is_relative_to(home) for home in HOMES) else list(reversed(path.parents))
    for place in (*way, path):
        try:
            status = place.stat()
        except OSError as error:
            return f"{place}: {error.strerror}"
        letters = "x" if place != path else wanted + "x" * stat.S_ISDIR(status.st_mode)
        if clause := _refused(place, status, letters, identity):
            return clause
    return ""


def _refused(place: Path, status: os.stat_result, letters: str, identity: Identity) -> str:
    shift, whose = identity.class_of(status)
    need = sum({"r": 4, "w": 2, "x": 1}[letter] for letter in letters)
    if (status.st_mode >> shift) & need == need or _has_acl(place):
        return ""
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    what = "the server's user" if identity.uid is not None else "the server's own uid"
    if "w" in letters and whose == "o":
        # Whoever may write for everybody gives the path away.
        help_ = "name a group of it in groups, and let that group write: chmod g+rwX"
        return f"{what} may not write {place} (mode {mode}); {help_} {place}"
    return f"{what} cannot pass {place} (mode {mode}); run: chmod {whose}+{letters} {place}"


def _has_acl(place: Path) -> bool:
    with suppress(OSError):
        return bool(os.getxattr(place, _ACL))
    return False
