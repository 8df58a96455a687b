"""The profiles: what a server's program needs beyond the sandbox that all have. Pure."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.server import ServerSpec


@dataclass(frozen=True, slots=True)
class Profile:
    """One row of the table below.

    Attributes:
        compiles: it makes code at run time: V8 aborts under MemoryDenyWriteExecute=.
        interfaces: it asks for network interfaces where it has a network, which takes AF_NETLINK:
            os.networkInterfaces() of node throws without.
        namespaces: the kinds of namespaces that it may make (RestrictNamespaces=).
        calls: system calls that it may make beyond those of the unit's filter.
        denied: system calls that it may not make although the unit's filter lets them through.
    """

    compiles: bool = False
    interfaces: bool = False
    namespaces: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


PROFILES: Mapping[str, Profile] = {
    # A file in memory is the one that NoExecPaths= cannot keep from being executed.
    "strict": Profile(denied=("memfd_create",)),
    "python": Profile(),
    "node": Profile(compiles=True, interfaces=True),
    "npx": Profile(compiles=True, interfaces=True),
    "uvx": Profile(),
    # Chromium's own sandbox: each renderer in namespaces of its own, its root an empty directory.
    # No AF_NETLINK: with a user namespace it would reach nf_tables, and Chromium can do without.
    "browser": Profile(
        compiles=True, namespaces=("user", "pid", "net"), calls=("capset", "chroot")
    ),
}
_NODE = frozenset({"node", "nodejs", "npx", "npm"})


def profile_of(spec: ServerSpec, command: Command) -> Profile:
    """The one that the definition names, else by its command: node's own, and python's for all."""
    if spec.profile is not None:
        return PROFILES[spec.profile]
    programs = {posixpath.basename(words[0]) for words in (command.argv, spec.command) if words}
    return PROFILES["python" if _NODE.isdisjoint(programs) else "node"]
