"""What a server needs of the host before systemd starts anything: each thing is looked at."""

import os
import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

from autobot_mcp_bridge.diagnosis.check import Check, fail, ok, warn
from autobot_mcp_bridge.diagnosis.original import Original
from autobot_mcp_bridge.diagnosis.unit_text import plain
from autobot_mcp_bridge.model.errors import BridgeError
from autobot_mcp_bridge.model.finding import Finding
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.access.reach import SYSTEM_PATH, blocked_at
from autobot_mcp_bridge.units.access.trusted import roots_own
from autobot_mcp_bridge.units.disk.trees import entries_below
from autobot_mcp_bridge.units.sandbox.confinement import Facts

VERSION_WITHIN = 5.0
# Files of a state directory that are looked at for their owner.
MOST_FILES = 2000
MOST_LEVELS = 64
_VERSIONED = re.compile(r"(?:node|nodejs|python\d?(?:\.\d+)?|npx|uvx)")
_SHEBANG_BYTES = 256
_STORES = Facts()


def of_command(spec: ServerSpec, argv: Sequence[str]) -> Iterator[Check]:
    """The program and its interpreter: there, and to be executed by the server's uid."""
    if spec.root is not None:
        # Nothing of the host's is there, and nobody but its own programs may look into it.
        yield ok("command", f"{argv[0]} of its own root, in which apply has found it")
        return
    program = Path(argv[0])
    if not program.is_file():
        yield missing_program(spec, argv[0], f"{argv[0]} is not there")
        return
    interpreter = _interpreter(program)
    if interpreter is not None and not Path(interpreter[0]).is_file():
        what = f"the interpreter in the first line of {program}, {interpreter[0]},"
        yield fail(
            "command",
            f"cannot be executed: {what} is not there",
            Finding.PROGRAM_MISSING,
            f"install {interpreter[0]}, or mend the first line of {program}",
        )
        return
    if (place := blocked_at(program)) is not None:
        rights = "o+x" if place.is_dir() else "o+rx"
        yield fail(
            "command",
            f"cannot be executed: its uid may not pass {place} (mode {_mode(place)})",
            Finding.PROGRAM_UNUSABLE,
            f"run: chmod {rights} {shlex.quote(str(place))}",
        )
        return
    runs = [str(program), *(interpreter or ())]
    yield ok("command", f"{program} can be executed{_versions(runs)}")


def unusable_program(spec: ServerSpec, why: str) -> Check:
    """A command that could not be resolved, with the words of whoever tried."""
    name = spec.command[0]
    if Path(name).is_file() and not os.access(name, os.X_OK):
        text = f"cannot be executed: {name} has mode {_mode(Path(name))}"
        mend = f"run: chmod a+rx {shlex.quote(name)}"
        return fail("command", text, Finding.PROGRAM_UNUSABLE, mend)
    if shutil.which(name, path=os.pathsep.join((*SYSTEM_PATH, os.environ.get("PATH", "")))):
        return fail("command", f"cannot be executed: {why}", Finding.PROGRAM_UNUSABLE, "")
    return missing_program(spec, name, why)


def missing_program(spec: ServerSpec, name: str, clause: str) -> Check:
    """A program that is not there; with the place where one of that name is, if there is one."""
    base = PurePosixPath(name).name
    found = [f"{place}/{base}" for place in SYSTEM_PATH if Path(place, base).is_file()]
    text = f"has no program to start: {clause}"
    if found and spec.command:
        key: dict[str, object] = {"command": [found[0], *spec.command[1:]]}
        return fail("command", text, Finding.PROGRAM_MISSING, "", key)
    mend = f"install {base}, or name where it is in command"
    return fail("command", text, Finding.PROGRAM_MISSING, mend)


def of_credentials(original: Original) -> Iterator[Check]:
    for name, path in original.credentials:
        if Path(path).is_file():
            yield ok("credential", f"{name} is in {path}")
            continue
        yield fail(
            "credential",
            f"lacks its credential {name}: {path} is not there",
            Finding.CREDENTIAL_MISSING,
            _stored(Path(path)),
        )


def missing_credential(why: str) -> Check:
    """A secret without which apply has not let the server start, with the words of apply."""
    text, _, command = why.partition("; run: ")
    mend = f"run: {command}" if command else "mend that, then run: mcp-bridge apply"
    return fail("credential", f"lacks a secret: {text}", Finding.CREDENTIAL_MISSING, mend)


def _stored(path: Path) -> str:
    """How a secret's file comes back; only `secret set` can make one that is encrypted."""
    if str(path.parent) in {_STORES.encrypted, _STORES.credentials}:
        return f"run: mcp-bridge secret set {shlex.quote(path.name)}"
    return f"store it: install -m 0600 /dev/stdin {shlex.quote(str(path))}"


def of_paths(original: Original) -> Iterator[Check]:
    """What is bound into the sandbox must be there, or its set-up fails."""
    for directive in ("BindPaths", "BindReadOnlyPaths"):
        for entry in original.entries(directive):
            path = plain(entry).partition(":")[0]
            optional = entry.strip('"').startswith("-")
            if not optional and not Path(path).exists():
                yield fail(
                    "paths",
                    f"cannot be set up by systemd: {path}, which {directive}= names, is not there",
                    Finding.SETUP_FAILED,
                    f"make it: mkdir -p {shlex.quote(path)}; or take it out of paths",
                )


def of_state(original: Original) -> Iterator[Check]:
    """Its own directory, which it fills as it likes."""
    name = original.home.removeprefix("/var/lib/")
    private = Path("/var/lib/private") / name
    yield of_directory(private if private.exists() else Path("/var/lib") / name)


def of_directory(root: Path) -> Check:
    """Nothing in it belongs to another than the directory itself, as far as is looked."""
    try:
        owner = root.lstat().st_uid
    except FileNotFoundError:
        return ok("state directory", f"{root} is made at the first start")
    for path, status in islice(entries_below(root, MOST_LEVELS), MOST_FILES):
        if status.st_uid != owner:
            text = f"{path} belongs to uid {status.st_uid}, not to {owner}"
            return warn("state directory", text, f"chown -R --from=0 {owner}:{owner} {root}")
    return ok("state directory", f"{root} belongs to uid {owner}")


def _interpreter(path: Path) -> list[str] | None:
    with path.open("rb") as file:
        head = file.read(_SHEBANG_BYTES)
    if not head.startswith(b"#!"):
        return None
    words = os.fsdecode(head[2:].split(b"\n", 1)[0]).split()
    return words or None


def _versions(programs: Sequence[str]) -> str:
    told = []
    for program in programs:
        path = Path(program)
        if _VERSIONED.fullmatch(path.name) and (file := roots_own(path)) is not None:
            told.append(f"{path.name} {_version(file)}")
    return f" ({', '.join(told)})" if told else ""


def _version(program: Path) -> str:
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent"},
            timeout=VERSION_WITHIN,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "of an unknown version"
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    return lines[0].strip().removeprefix("Python ").removeprefix("v")


def _mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"


def guarded(what: str, checks: Iterator[Check]) -> Iterator[Check]:
    """The checks; one that cannot look says so, and holds up no other."""
    try:
        yield from checks
    except (OSError, BridgeError) as error:
        yield warn(what, f"cannot be looked at: {error}")
