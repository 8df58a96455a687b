"""The profiles: what a server's program needs beyond the sandbox that all have. Pure."""

import posixpath
from collections.abc import Mapping, Sequence
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
        local: it makes sockets of AF_UNIX. What listens below /run on the host is hidden then:
            systemd-resolved would ask for names, others know more.
        machine: it reads of /proc what is not about processes, such as cpuinfo (ProcSubset=).
        namespaces: the kinds of namespaces that it may make (RestrictNamespaces=).
        calls: system calls that it may make beyond those of the unit's filter.
        denied: system calls that it may not make although the unit's filter lets them through.
    """

    compiles: bool = False
    interfaces: bool = False
    local: bool = False
    machine: bool = False
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
    # Chromium's own sandbox puts each renderer into namespaces of its own and an empty root; its
    # lock is a socket, and Debian's wrapper reads cpuinfo. No AF_NETLINK: in a user namespace it
    # would reach nf_tables, and Chromium goes on without.
    "browser": Profile(
        compiles=True,
        local=True,
        machine=True,
        namespaces=("user", "pid", "net"),
        calls=("capset", "chroot"),
    ),
}
_NODE = frozenset({"node", "nodejs", "npx", "npm"})


def profile_of(spec: ServerSpec, command: Command) -> Profile:
    """The one that the definition names, else by its command: node's own, and python's for all."""
    return PROFILES[profile_name(spec, command.argv)]


def profile_name(spec: ServerSpec, argv: Sequence[str]) -> str:
    """The name of the same; `argv` is what the unit executes."""
    if spec.profile is not None:
        return spec.profile
    programs = {posixpath.basename(words[0]) for words in (argv, spec.command) if words}
    return "python" if _NODE.isdisjoint(programs) else "node"
