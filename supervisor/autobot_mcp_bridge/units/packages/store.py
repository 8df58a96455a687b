"""Installed packages: one directory per exact version, complete when its marker stands in it.

    <store>/npm/@scope/name@1.2.3/        with .complete.json, written last
    <store>/pypi/mcp+cli@2.3.0/
    <store>/resolved.json                 which version a range or no version came to mean, and
                                          which one it meant before its last upgrade
    <store>/logs/, <store>/locks/, <store>/cache/

A directory without its marker is an install that was cut off (BUGS S9): whoever holds the
package's lock removes it and starts again. The store is world-readable, since every server runs
as another uid; only its owner writes.
"""

import fcntl
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from autobot_mcp_bridge.units.disk.trees import remove_tree
from autobot_mcp_bridge.units.packages.job import InstallError, Job
from autobot_mcp_bridge.units.packages.specs import Kind, PackageSpec

MARKER = ".complete.json"
MARKER_VERSION = 1
RESOLVED = "resolved.json"
LOCK = "requirements.txt"  # what a PyPI install consists of, with hashes
# How often a lock that another process holds is tried again.
LOCK_PAUSE = 0.2
# A file of a package, by its path: npm's names have a scope or none.
_IN_STORE = re.compile(rf"/packages/(?:{'|'.join(Kind)})/((?:@[^/@]+/)?[^/@]+@[^/]+)/")
PUBLIC_DIRECTORY = 0o755
PUBLIC_FILE = 0o644


@dataclass(frozen=True, slots=True)
class Installed:
    """One complete install, as its marker tells.

    Attributes:
        version: the exact one.
        integrity: npm's or PyPI's digest of the package's archive; empty where none was told.
        binaries: program name to its argv.
        default: the program that is meant when none is named; None where that is not clear.
        path: directories for PATH, so that the server finds its own node or python.
    """

    version: str
    integrity: str
    binaries: Mapping[str, tuple[str, ...]]
    default: str | None
    path: tuple[str, ...] = field(default=())

    def argv(self, binary: str | None) -> tuple[str, ...]:
        """The words that start the program.

        Raises:
            InstallError: the package has no such program.
        """
        wanted = binary or self.default
        if wanted is None or wanted not in self.binaries:
            names = ", ".join(sorted(self.binaries)) or "none"
            what = f"no program {wanted}" if wanted else "no program of its own name"
            raise InstallError(f"the package has {what}; it has: {names}")
        return tuple(self.binaries[wanted])


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a spec that leaves the version open has come to mean.

    Attributes:
        version: the one in force.
        before: the one that was in force before it; None where there was none.
    """

    version: str
    before: str | None = None

    @classmethod
    def read(cls, found: object) -> "Resolution | None":
        """From a value of resolved.json; None for one that is none."""
        match found:
            case {"version": str(version), "before": str() | None as before}:
                return cls(version, before)
            case str(version):  # as it was written before there were upgrades
                return cls(version)
        return None


class Store:
    """The directories; nothing here starts a program. Every method blocks (disk, file locks)."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def directory(self, spec: PackageSpec, version: str) -> Path:
        return self.root / spec.kind.value / f"{spec.directory_name}@{version}"

    def prepare(self) -> None:
        """Make the store's directories, readable for every uid whatever the caller's umask is."""
        for name in ("", "logs", "locks", "cache", *Kind):
            public_directory(self.root / name)

    def log_file(self, name: str) -> Path:
        return self.root / "logs" / f"{_flat(name)}.log"

    @contextmanager
    def locked(self, name: str, job: Job) -> Iterator[None]:
        """Hold the lock of that name against other processes and threads.

        Raises:
            InstallError: it was not free within the job's deadline, or the job was cancelled.
        """
        with (self.root / "locks" / f"{_flat(name)}.lock").open("w", encoding="utf-8") as file:
            while not _try_lock(file.fileno()):
                job.check(f"another process has been installing {name} all the time")
                time.sleep(LOCK_PAUSE)
            yield

    def find(self, spec: PackageSpec) -> Installed | None:
        """The complete install that the spec means, if there is one."""
        version = spec.version if spec.exact else self.resolved(spec)
        return self.read(self.directory(spec, version)) if version is not None else None

    def read(self, directory: Path) -> Installed | None:
        try:
            found = json.loads((directory / MARKER).read_text(encoding="utf-8"))
            if found.pop("format") != MARKER_VERSION:
                return None
            binaries = {name: tuple(argv) for name, argv in found.pop("binaries").items()}
            installed = Installed(binaries=binaries, path=tuple(found.pop("path")), **found)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # no marker, or none that can be believed: not installed
        return installed if _is_whole(installed) else None

    def complete(self, directory: Path, installed: Installed) -> None:
        """Write the marker: from here on the install counts."""
        document = {"format": MARKER_VERSION, **asdict(installed)}
        replace_public(directory / MARKER, json.dumps(document, indent=1) + "\n")

    def resolved(self, spec: PackageSpec) -> str | None:
        """The exact version that a range means since it was first asked for, or last upgraded."""
        found = self.resolution(spec)
        return found.version if found is not None else None

    def resolution(self, spec: PackageSpec) -> Resolution | None:
        return Resolution.read(self._resolutions().get(resolution_key(spec)))

    def remember(self, spec: PackageSpec, version: str, job: Job) -> None:
        """Have the spec mean that version from now on; the one that it meant stays known."""
        with self.locked(RESOLVED, job):
            old = self.resolution(spec)
            if old is None or old.version != version:
                new = Resolution(version, old.version if old is not None else None)
                self._write_resolution(spec, new)

    def roll_back(self, spec: PackageSpec, job: Job) -> Resolution:
        """Exchange the version in force and the one before; what is so now.

        Raises:
            InstallError: there is none before, or it is not installed any more.
        """
        with self.locked(RESOLVED, job):
            old = self.resolution(spec)
            if old is None or old.before is None:
                raise InstallError(f"{spec.label} has not been upgraded: no version stood before")
            if self.read(self.directory(spec, old.before)) is None:
                raise InstallError(f"{spec.label}: version {old.before} is not installed any more")
            new = Resolution(old.before, old.version)
            self._write_resolution(spec, new)
        return new

    def forget(self, spec: PackageSpec, version: str, job: Job) -> bool:
        """Delete a version of the package unless some spec that leaves it open still means it.

        Whether it was deleted. Specs that name it exactly are for the caller to know.
        """
        name = resolution_key(replace(spec, version=None))
        with self.locked(RESOLVED, job):
            for key, value in self._resolutions().items():
                found = Resolution.read(value)
                # A longer name that begins alike at worst keeps what could go.
                if key.startswith(name) and found and version in (found.version, found.before):
                    return False
        directory = self.directory(spec, version)
        (directory / MARKER).unlink(missing_ok=True)  # first: what is half deleted counts as none
        with suppress(OSError):
            remove_tree(directory)
        return True

    def _write_resolution(self, spec: PackageSpec, new: Resolution) -> None:
        known = {**self._resolutions(), resolution_key(spec): asdict(new)}
        replace_public(self.root / RESOLVED, json.dumps(known, indent=1, sort_keys=True) + "\n")

    def _resolutions(self) -> dict[str, object]:
        try:
            known = json.loads((self.root / RESOLVED).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}


def public_directory(path: Path) -> None:
    """Make the directory and what is missing above it, readable for every uid."""
    missing = [path, *path.parents]
    missing = missing[: next((n for n, p in enumerate(missing) if p.exists()), len(missing))]
    for directory in reversed(missing):
        directory.mkdir(exist_ok=True)
        directory.chmod(PUBLIC_DIRECTORY)


def fresh_directory(path: Path) -> None:
    """An empty directory in the place of whatever a cut-off install left there.

    It is emptied and not made anew: in a unit it may be a mount, which cannot be removed.
    """
    public_directory(path)
    for child in path.iterdir():
        if child.is_dir() and not child.is_symlink():
            remove_tree(child)
        else:
            child.unlink()


def replace_public(path: Path, text: str) -> None:
    """Write the file whole or not at all, durable before it counts."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.chmod(PUBLIC_FILE)
    draft.replace(path)


def package_of(argv: Iterable[str]) -> str | None:
    """The installed package that a command starts, `name@version`; None for one that is none."""
    for word in argv:
        if (found := _IN_STORE.search(word)) is not None:
            return found[1]
    return None


def resolution_key(spec: PackageSpec) -> str:
    """Where a spec stands in resolved.json."""
    return f"{spec.kind.value}:{spec.label}"


def _is_whole(installed: Installed) -> bool:
    """Whether the files that its programs are started with are still there."""
    return all(Path(word).exists() for argv in installed.binaries.values() for word in argv)


def _flat(name: str) -> str:
    return name.replace("/", "+")


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
