"""A server's own root file system, RootDirectory= or RootImage= (systemd.exec(5)): pure.

The rest of the sandbox stays. What is the host's in it (the launcher, state, cache, paths) is bound,
on mount points that no image needs to have; measured with systemd 252 and 257.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from autobot_mcp_bridge.config.problem import Loc
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units import escape

SETTINGS = {"directory": "RootDirectory", "image": "RootImage"}
# Where the launcher is bound to.
LAUNCHER = "/run/mcp-bridge/launch.py"
# Empty and read-only in every root, with room for the mount points of what is bound. Without its
# own line /run would be writable for everybody, and executable, with systemd 252.
EMPTY = ("/run", "/var/lib", "/var/cache")
# The same, where the definition shares something below: no image keeps anything there (FHS 3).
_EMPTIED = ("/srv", "/mnt", "/media")
# systemd makes these anew (PrivateTmp=, MountAPIVFS=), on directories that have to be there.
MOUNTED = ("/proc", "/sys", "/dev", "/tmp", "/var/tmp")  # noqa: S108 - the root's own
RESOLVER = "/etc/resolv.conf"
# The modes in which a server resolves names by itself.
_RESOLVING = frozenset({"list", "internet"})


@dataclass(frozen=True, slots=True)
class Image:
    """What a root changes in a unit.

    Attributes:
        setting, path: of systemd.exec(5), and its value.
        empty: paths that are empty directories inside.
        resolver: the host's file that is bound, if the server resolves names.
    """

    setting: str
    path: str
    empty: tuple[str, ...]
    resolver: str | None


def image_of(spec: ServerSpec) -> Image | None:
    """None for a server in the host's root."""
    if spec.root is None:
        return None
    shared = (*spec.paths.read, *spec.paths.write)
    emptied = (place for place in _EMPTIED if any(_below(path, place) for path in shared))
    resolver = RESOLVER if spec.network.mode in _RESOLVING else None
    return Image(SETTINGS[spec.root.key], spec.root.path, (*EMPTY, *emptied), resolver)


def mount_points(spec: ServerSpec) -> Iterator[tuple[Loc, str]]:
    """Each path that the root has to have because something of the host's is bound there."""
    found = image_of(spec)
    if found is None:
        return
    # ProtectHome=tmpfs has room, too.
    roomy = (*found.empty, "/home", "/root", "/run/user")
    for key in ("read", "write"):
        for index, path in enumerate(getattr(spec.paths, key)):
            if not any(_below(path, place) for place in roomy):
                yield ("paths", key, index), path
    if found.resolver is not None:
        yield ("network", "mode"), found.resolver


def refusals(spec: ServerSpec) -> Iterator[tuple[Loc, str]]:
    """What no unit could have as its root: place and clause."""
    if spec.root is None:
        return
    try:
        escape.value(spec.root.path)
    except ValueError as error:
        yield ("root", spec.root.key), str(error)
    if spec.root.path == "/":
        yield ("root", spec.root.key), "allowed is another root than the host's; leave it out"


def _below(path: str, place: str) -> bool:
    return path != place and PurePosixPath(path).is_relative_to(place)
