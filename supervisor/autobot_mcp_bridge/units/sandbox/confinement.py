"""What a server's sandbox is made of, and what it cannot be yet: pure, from spec and command."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from autobot_mcp_bridge.config.places import PRODUCT
from autobot_mcp_bridge.config.problem import Loc
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units import escape
from autobot_mcp_bridge.units.packages import live
from autobot_mcp_bridge.units.sandbox import image, names, network
from autobot_mcp_bridge.units.sandbox.resolvers import Resolvers

HOMES = ("/home", "/root", "/run/user")
_PRIVATE = (*HOMES, "/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - places to keep out of
_KERNEL = ("/proc", "/sys", "/dev")
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
# The kernel takes 2 MiB with the usual stack (execve(2)), and the launcher's own words come too.
MOST_TOGETHER = 1 << 20
# The launcher's own words stand on that line, too.
MOST_LINE = escape.MOST_LINE - 4096
PREFIX = "MCP_BRIDGE_ENV_"  # as in templates/launch.py

Refusal = tuple[Loc, str]


@dataclass(frozen=True, slots=True)
class Facts:
    """Where things lie on this host.

    Attributes:
        python: the host's own.
        program: the one that has this package.
        state, cache: the roots of StateDirectory= and CacheDirectory= (systemd.exec(5)).
        packages: the store of installed packages, whose files may be executed.
        credentials: the directory with one file for each credential.
        encrypted: the same, of those that systemd-creds(1) has encrypted.
        are_encrypted: names of those in `encrypted`, which count before those in `credentials`.
        resolvers: whom this host asks for names.
    """

    python: str = "/usr/bin/python3"
    program: str = "/usr/lib/mcp-bridge/venv/bin/python"
    launcher: str = "/usr/lib/mcp-bridge/launch.py"
    state: str = "/var/lib"
    cache: str = "/var/cache"
    packages: str = "/var/lib/mcp-bridge/packages"
    credentials: str = "/etc/credstore"
    encrypted: str = "/etc/mcp-bridge/credstore.encrypted"
    are_encrypted: frozenset[str] = frozenset()
    resolvers: Resolvers = field(default_factory=Resolvers)


def directory(spec: ServerSpec) -> str:
    """The server's own, below the roots of state and cache."""
    return str(PurePosixPath(PRODUCT) / spec.id.directory)


def environment(spec: ServerSpec, command: Command, facts: Facts) -> Mapping[str, str]:
    """The variables that the unit lists for the server; a later one wins over an earlier."""
    user = spec.run_as or spec.id.unit_user
    return {
        # A node or python of its own finds its siblings.
        "PATH": f"{posixpath.dirname(command.argv[0])}:{_SYSTEM_PATH}",
        "HOME": f"{facts.state}/{directory(spec)}",
        # getpwuid(3) would ask systemd for it, by a socket of AF_UNIX; Python asks these first.
        "USER": user,
        "LOGNAME": user,
        "XDG_CACHE_HOME": f"{facts.cache}/{directory(spec)}",
        # A python server would otherwise keep its answers in a block buffer.
        "PYTHONUNBUFFERED": "1",
        "MCP_INSTANCE": spec.instance,
        **live.variables(spec, f"{facts.cache}/{directory(spec)}"),
        **names.variables(spec),
        **command.env,
        **spec.env,
    }


def refusals(spec: ServerSpec, command: Command, facts: Facts) -> Iterator[Refusal]:
    """Each thing that no unit can carry or keep: place and clause, without any value."""
    yield from _unbuilt(spec)
    yield from image.refusals(spec)
    yield from _strings(spec, command, facts)
    shared = (*spec.paths.read, *spec.paths.write)
    if (place := hidden(command.argv[0], shared)) is not None:
        clause = f"the sandbox hides {place}; install the program elsewhere, or name it in paths"
        yield ("command", 0), clause
    # A private /tmp is there, if empty; a home is not.
    if spec.cwd is not None and (place := hidden(spec.cwd, shared)) in HOMES:
        yield ("cwd",), f"the sandbox hides {place}; name the directory in paths"
    yield from _paths(spec, facts)
    yield from _credentials(spec)


def _unbuilt(spec: ServerSpec) -> Iterator[Refusal]:
    if (clause := live.misused(spec)) is not None:
        yield ("profile",), clause
    yield from network.refusals(spec)
    if spec.sessions != "shared":
        yield ("sessions",), f"{spec.sessions} is not built yet; allowed is shared"


def _strings(spec: ServerSpec, command: Command, facts: Facts) -> Iterator[Refusal]:
    words, size = [], 0
    for index, text in enumerate(command.argv):
        try:
            if index == 0:
                escape.path(text)
            words.append(escape.word(text))
            size += len(text.encode()) + 1
        except ValueError as error:
            yield ("command", index) if spec.url is None else ("url",), str(error)
    if sum(len(word.encode()) + 1 for word in words) > MOST_LINE:
        yield ("command",), f"allowed are at most {MOST_LINE} bytes, as written in a unit"
    for name, text in environment(spec, command, facts).items():
        try:
            escape.assignment(PREFIX + name, text)
            size += len(text.encode()) + len(PREFIX + name) + 2
        except ValueError as error:
            yield ("env", name), str(error)
    if size > MOST_TOGETHER:
        yield (), f"command and env together: allowed are at most {MOST_TOGETHER} bytes"


def _paths(spec: ServerSpec, facts: Facts) -> Iterator[Refusal]:
    own = [f"{root}/{name}" for root in (facts.state, facts.cache) for name in (PRODUCT, "private")]
    taken = (*own, f"/run/{PRODUCT}", *_KERNEL)
    seen = set()
    for key in ("read", "write"):
        for index, text in enumerate(getattr(spec.paths, key)):
            try:
                escape.bound(text)
            except ValueError as error:
                yield ("paths", key, index), str(error)
                continue
            met = [other for other in taken if _within(text, other) or _within(other, text)]
            if met:
                yield ("paths", key, index), f"{met[0]} cannot be shared"
            if text in seen:
                yield ("paths", key, index), "stands there twice"
            seen.add(text)
    if spec.cwd is not None:
        try:
            escape.value(spec.cwd)
        except ValueError as error:
            yield ("cwd",), str(error)


def _credentials(spec: ServerSpec) -> Iterator[Refusal]:
    for name, credential in spec.credentials.items():
        if name in spec.env:
            yield ("credentials", name), "stands in env, too"
        if credential.file is not None:
            try:
                escape.value(credential.file)
            except ValueError as error:
                yield ("credentials", name, "file"), str(error)


def hidden(program: str, shared: tuple[str, ...]) -> str | None:
    """The directory that keeps the program out of the sandbox's sight, if one does."""
    if any(_within(program, path) for path in shared):
        return None
    return next((place for place in _PRIVATE if _within(program, place)), None)


def _within(path: str, other: str) -> bool:
    return PurePosixPath(path).is_relative_to(other)


def below_homes(paths: tuple[str, ...]) -> bool:
    return any(_within(path, home) or _within(home, path) for path in paths for home in HOMES)
