"""What a server's own root holds, asked of its own python3 in a transient unit (systemd-run(1)).

systemd mounts it as it will for the server, and the kernel tells what a uid without any right may
execute there. Nothing of it runs with a right of root's.
"""

import os
import subprocess
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from stat import S_IMODE, S_ISDIR, S_ISREG, S_IWGRP, S_IWOTH, S_IXOTH

from autobot_mcp_bridge.config.problem import json_path
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.server import Root, ServerSpec
from autobot_mcp_bridge.units import transient
from autobot_mcp_bridge.units.access.reach import SYSTEM_PATH
from autobot_mcp_bridge.units.access.root import is_root
from autobot_mcp_bridge.units.access.trusted import others_place
from autobot_mcp_bridge.units.sandbox import image
from autobot_mcp_bridge.units.sandbox.confinement import directory
from autobot_mcp_bridge.units.transient import Done

PYTHON = "/usr/bin/python3"
OLDEST = (3, 9)  # what the launcher is written for
RUN_SECONDS = 10.0  # of the unit; the answer takes 0.2 s
MOST_ANSWER = 1 << 20
_MOST_WORDS = 300  # characters of what a program said last
_EXEC, _NAMESPACE = 203, 226  # systemd.exec(5), "Process Exit Codes"
# One line for the version, one for each path: does it exist, is it a directory, may it be executed.
_SCRIPT = """\
import os, sys
print(*sys.version_info[:2])
for path in sys.argv[1:]:
    print(int(os.path.exists(path)), int(os.path.isdir(path)), int(os.access(path, os.X_OK)))
"""
# As an instance's unit, as far as it is about who asks.
SANDBOX = {
    "DynamicUser": "yes",
    "RootDirectoryStartOnly": "yes",
    "MountAPIVFS": "yes",
    "TemporaryFileSystem": " ".join(f"{path}:ro,noexec" for path in image.EMPTY),
    "CapabilityBoundingSet": "",
    "PrivateUsers": "yes",
    "PrivateNetwork": "yes",
    "PrivateDevices": "yes",
    "PrivateIPC": "yes",
    "ProtectHome": "yes",
    "ProtectProc": "invisible",
    "ProcSubset": "pid",
    "ProtectKernelTunables": "yes",
    "ProtectControlGroups": "yes",
    "RestrictAddressFamilies": "AF_UNIX",  # systemd-run does not know "none"
    "RestrictNamespaces": "yes",
    "SystemCallArchitectures": "native",
    "SystemCallFilter": "@system-service",
    "SystemCallErrorNumber": "EPERM",
    "MemoryMax": "256M",
    "TasksMax": "16",
    # What it can write to root's files, too: its answer and its last words.
    "LimitFSIZE": "2M",
    "LimitCORE": "0",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A path of a root: whether there is one, is a directory, may be executed by any uid."""

    exists: bool
    is_directory: bool
    executable: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a root.

    Attributes:
        why: why no server can start in it, with what helps; empty when one can.
        distrusted: others than root may write it, so that no server may.
        entries: of the paths that were asked for; None when nobody has looked inside.
    """

    why: str = ""
    entries: Mapping[str, Entry] | None = None
    distrusted: bool = False


Look = Callable[[Root, Iterable[str]], Seen]


def look(root: Root, paths: Iterable[str]) -> Seen:
    """Look at a root, and at paths in it; without being root at the outside only. Blocks."""
    if why := _unfit(root):
        return Seen(why)
    if why := _open_to_others(root):
        return Seen(why, distrusted=True)
    if not is_root():
        return Seen()
    asked = sorted(set(paths))
    unit = f"mcp-bridge-look-{uuid.uuid4().hex[:12]}.service"
    properties = {**SANDBOX, image.SETTINGS[root.key]: root.path.replace("%", "%%")}
    program = (PYTHON, "-I", "-S", "-c", _SCRIPT, *asked)
    try:
        done = transient.run(program, properties, seconds=RUN_SECONDS, most=MOST_ANSWER, unit=unit)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Seen(f"it could not be looked at: systemd-run: {error}")
    if done.status == 0 and (entries := _read(done.answer, asked)) is not None:
        return entries
    return Seen(_failed(root, done, unit))


def _unfit(root: Root) -> str:
    """Why it is no root, seen from outside."""
    try:
        mode = Path(root.path).stat().st_mode
    except OSError as error:
        return f"{root.path}: {error.strerror}"
    if root.key == "image":
        if not S_ISREG(mode):
            return f"{root.path}: allowed is a file; a directory is root.directory"
        return ""
    if not S_ISDIR(mode):
        return f"{root.path}: allowed is a directory; an image is root.image"
    if not mode & S_IXOTH:
        shown = f"mode {S_IMODE(mode):04o}"
        return f"{root.path}: no server's uid can pass it ({shown}); run: chmod o+rx {root.path}"
    return ""


def _open_to_others(root: Root) -> str:
    """Who but root could exchange or write it."""
    try:
        status = Path(root.path).stat()
    except OSError as error:
        return f"{root.path}: {error.strerror}"
    mode = f"mode {S_IMODE(status.st_mode):04o}"
    if root.key == "image":
        # The kernel reads it as a file system: who writes it could attack the kernel.
        if status.st_uid != 0 or status.st_mode & (S_IWGRP | S_IWOTH):
            return (
                f"{root.path}: allowed is a file that root alone may write (owner "
                f"{status.st_uid}, {mode}); run: chown root {root.path}; chmod 644 {root.path}"
            )
        if place := others_place(Path(os.path.realpath(root.path))):
            return (
                f"{root.path}: allowed is a file that root alone may exchange; others may write "
                f"{place}, run: chown root {place}; chmod go-w {place}"
            )
        return ""
    if status.st_mode & S_IWOTH:
        return f"{root.path}: everybody may write it ({mode}); run: chmod o-w {root.path}"
    return ""


def _read(answer: bytes, asked: list[str]) -> Seen | None:
    """The script's words, of which the root's author may have made others."""
    try:
        version, *found = (tuple(map(int, line.split())) for line in answer.splitlines())
        entries = {path: Entry(*map(bool, row)) for path, row in zip(asked, found, strict=True)}
    except (ValueError, TypeError):
        return None
    if version < OLDEST:
        wanted, there = (".".join(map(str, numbers)) for numbers in (OLDEST, version))
        return Seen(f"its {PYTHON} is {there}; allowed is {wanted} or newer")
    return Seen("", entries)


def _failed(root: Root, done: Done, unit: str) -> str:
    if done.status == _EXEC:
        if root.key == "image":
            help_ = "build it with python3, as `make sandbox-image` does"
        else:
            help_ = f"run: chroot {root.path} apt-get install python3"
        return f"it has no {PYTHON} that can be executed, which starts the server; {help_}"
    if done.status == _NAMESPACE:
        places = " ".join((*image.MOUNTED, *image.EMPTY))
        return (
            f"systemd cannot mount it; it must be a file system of this host's kernel and hold the "
            f"directories {places}; see: journalctl -u {unit}"
        )
    last = done.said[-_MOST_WORDS:].rpartition("\n")[2]
    said = "".join(filter(str.isprintable, last)) or f"status {done.status}"
    return f"its {PYTHON} could not be run: {said}; see: journalctl -u {unit}"


@dataclass(slots=True)
class Roots:
    """The roots of some servers, each looked at once, when it is asked for."""

    specs: Iterable[ServerSpec]
    look: Look = look
    _seen: dict[Root, Seen] = field(default_factory=dict)

    def command(self, spec: ServerSpec) -> Command | None:
        """The command with its first word as a path of the root; None without a root of its own.

        Where it is not there, the path is a guess, and `refusals` tells.
        """
        if spec.root is None:
            return None
        name, *rest = spec.command
        entries = self._of(spec.root).entries or {}
        found = [p for p in _candidates(name) if p in entries and _is_program(entries[p])]
        return Command(((found or _candidates(name)[-1:])[0], *rest))

    def refusals(self, spec: ServerSpec) -> Iterator[str]:
        """What the root does not have for the server: JSON path, clause, what helps."""
        if spec.root is None:
            return
        seen = self._of(spec.root)
        if seen.why:
            yield f"{json_path(('root', spec.root.key))}: {seen.why}"
        if seen.entries is None:
            return
        name = spec.command[0]
        if not any(_is_program(seen.entries[path]) for path in _candidates(name)):
            yield f"{json_path(('command', 0))}: {_not_a_program(name, seen.entries)}"
        for loc, path in image.mount_points(spec):
            if not seen.entries[path].exists:
                make = "touch" if path == image.RESOLVER else "mkdir -p"
                yield (
                    f"{json_path(loc)}: the root has no {path} to bind the host's on; "
                    f"in the root, run: {make} {path}"
                )
        if (cwd := _inner_cwd(spec)) is not None and not seen.entries[cwd].is_directory:
            yield f"{json_path(('cwd',))}: the root has no directory {cwd}"

    def distrusts(self, spec: ServerSpec) -> bool:
        """Whether the server may not be started, since others than root may write its root."""
        return spec.root is not None and self._of(spec.root).distrusted

    def _of(self, root: Root) -> Seen:
        if root not in self._seen:
            same = [spec for spec in self.specs if spec.root == root]
            self._seen[root] = self.look(root, {path for spec in same for path in _asked(spec)})
        return self._seen[root]


def _asked(spec: ServerSpec) -> Iterator[str]:
    yield from _candidates(spec.command[0])
    yield from (path for _, path in image.mount_points(spec))
    if (cwd := _inner_cwd(spec)) is not None:
        yield cwd


def _candidates(name: str) -> list[str]:
    return [name] if "/" in name else [f"{folder}/{name}" for folder in SYSTEM_PATH]


def _is_program(entry: Entry) -> bool:
    return entry.executable and not entry.is_directory


def _not_a_program(name: str, entries: Mapping[str, Entry]) -> str:
    there = [path for path in _candidates(name) if entries[path].exists]
    if there:
        return f"the server's own uid cannot execute {there[0]}; in the root, run: chmod o+rx"
    where = "" if "/" in name else f"; searched: {':'.join(SYSTEM_PATH)}"
    return f"the root has no {name}{where}"


def _inner_cwd(spec: ServerSpec) -> str | None:
    """The working directory, if it is the root's own."""
    if spec.cwd is None:
        return None
    bound = (*spec.paths.read, *spec.paths.write, f"/var/lib/{directory(spec)}")
    below = any(PurePosixPath(spec.cwd).is_relative_to(path) for path in bound)
    return None if below else spec.cwd
