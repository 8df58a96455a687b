"""What lies on the disk and nobody needs any more: found, taken away, deleted.

Taking away is a rename, for which the caller holds the lock of the state directory, as apply does;
deleting takes its time without it. Everything blocks.
"""

import fcntl
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from autobot_mcp_bridge.config.places import PRODUCT, RESERVED_TENANTS, Places
from autobot_mcp_bridge.model.names import ServerId, parse_instance
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units import removal
from autobot_mcp_bridge.units.disk.trees import remove_tree
from autobot_mcp_bridge.units.fetch.fetches import package_id
from autobot_mcp_bridge.units.packages.in_use import directories_in_use
from autobot_mcp_bridge.units.packages.node import WHEEL
from autobot_mcp_bridge.units.packages.specs import Kind, PackageSpec, parse_command
from autobot_mcp_bridge.units.packages.store import Installed, Store
from autobot_mcp_bridge.units.removal import ENDED
from autobot_mcp_bridge.units.sandbox.confinement import Facts

STAGING = Path("/var/lib/private/mcp-bridge-fetch")
# What has just come may be about to be used: an install writes its marker before anybody knows.
SETTLED = 3600.0


# Begins the name of what was taken away, beside where it was; no server or package begins so.
TAKEN = ".removing-"


class What(StrEnum):
    """The kinds of leftovers."""

    CACHE = "cache"  # of a server that was removed
    STATE = "state"  # the same; only when asked for
    PACKAGE = "package"  # a version that no server means
    INSTALL = "install"  # one that was cut off
    DOWNLOAD = "download"  # of an install that failed, for a package that nobody wants now
    RECORD = "record"  # how a removed server's processes ended


@dataclass(frozen=True, slots=True)
class Leftover:
    """One directory; `name` is the server's or the package's."""

    what: What
    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Keep:
    """What is needed.

    Attributes:
        specs: of all servers, disabled ones too.
        words: what their units execute.
        installing: ids of the packages that units install now.
        others: instances beside these that still have units.
    """

    specs: tuple[ServerSpec, ...]
    words: tuple[str, ...] = ()
    installing: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    @property
    def instances(self) -> set[str]:
        return {*self.others, *(spec.instance for spec in self.specs)}

    @property
    def packages(self) -> Iterator[PackageSpec]:
        for spec in self.specs:
            with suppress(ValueError):  # its state says what is wrong with it
                if spec.command and (package := parse_command(spec.command)) is not None:
                    yield package


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Of one host, or of one user's proxy without systemd.

    Attributes:
        facts: None without systemd.
    """

    places: Places
    keep: Keep
    facts: Facts | None
    staging: Path = STAGING
    ended: Path = ENDED
    settled: float = field(default=SETTLED)

    def find(self, *, state: bool) -> list[Leftover]:
        """All of them, in the order of their kinds.

        Raises:
            UnknownUseError: nobody can tell which packages are in use.
        """
        found = [*self._servers(What.CACHE)]
        if state:
            found += self._servers(What.STATE)
        found += self._packages()
        if self.facts is not None:
            found += [*self._downloads(), *self._records()]
        return found

    def take_away(self, leftover: Leftover) -> None:
        """Have one that `find` has found a moment ago be there no more.

        Raises:
            OSError: it cannot be moved.
        """
        match leftover.what:
            case What.CACHE | What.STATE:
                server = parse_instance(leftover.name)
                for root in self._roots(leftover.what):
                    path = root / server.directory
                    if path.is_dir() and not path.is_symlink():
                        _move(path, root)
                    removal.purge_directory(path)  # a link to it, and parents that are empty now
            case What.RECORD:
                removal.forget_records(self.ended, leftover.name)
            case What.PACKAGE | What.INSTALL:
                _move(leftover.path, self.places.packages)
                if leftover.path.parent.name.startswith("@"):
                    with suppress(OSError):  # other packages of the scope are there
                        leftover.path.parent.rmdir()
            case What.DOWNLOAD:
                _move(leftover.path, self.staging)

    def delete(self) -> None:
        """Delete all that was taken away, by a run that was killed, too."""
        roots = {*self._roots(What.STATE), *self._roots(What.CACHE), self.places.packages}
        if self.facts is not None:
            roots.add(self.staging)
        for root in roots:
            for path in root.glob(f"{TAKEN}*"):
                with suppress(OSError):  # the next run tries again
                    remove_tree(path)

    # Servers' own directories.

    def _roots(self, what: What) -> tuple[Path, ...]:
        if self.facts is None:
            return (self.places.state_dir,) if what is What.STATE else ()
        base = Path(self.facts.cache if what is What.CACHE else self.facts.state)
        return base / "private" / PRODUCT, base / PRODUCT

    def directories(self, what: What, server: ServerId) -> tuple[Path, ...]:
        """Where a server's state or cache may lie; one of them is a link, or not there."""
        return tuple(root / server.directory for root in self._roots(what))

    def _servers(self, what: What) -> Iterator[Leftover]:
        known = self.keep.instances
        for root in self._roots(what):
            for path in sorted(root.glob("*/*/*")):
                server = _server(path.parts[-3:])
                if server is None or server.instance in known or path.is_symlink():
                    continue
                if path.is_dir() and not path.parent.is_symlink():
                    yield Leftover(what, server.instance, path)

    # Packages.

    def _packages(self) -> Iterator[Leftover]:
        store = Store(self.places.packages)
        needed = self._needed(store)
        used: set[Path] | None = None
        for directory, label in _installed(store):
            if directory in needed or not self._is_settled(directory):
                continue
            if used is None:
                used = directories_in_use(store.root)
            if directory in used or _is_locked(store, directory):
                continue
            what = What.INSTALL if store.read(directory) is None else What.PACKAGE
            yield Leftover(what, label, directory)
        for directory in sorted(store.root.glob(".incoming-*")):
            ident = directory.name.removeprefix(".incoming-")
            if ident not in self.keep.installing and self._is_settled(directory):
                yield Leftover(What.INSTALL, ident, directory)

    def _needed(self, store: Store) -> set[Path]:
        """The versions in force, those before them, and what their programs are started with."""
        needed = {store.directory(WHEEL, str(WHEEL.version))} if self._wants_npm else set()
        for package in self.keep.packages:
            known = store.resolution(package)
            versions = (package.version,) if package.exact else ()
            if known is not None:
                versions = (*versions, known.version, known.before)
            needed |= {store.directory(package, each) for each in versions if each is not None}
        words = [*self.keep.words]
        for directory in needed:
            if (found := store.read(directory)) is not None:
                words += _words(found)
        return needed | {path for word in words if (path := _package_of(word, store)) is not None}

    @property
    def _wants_npm(self) -> bool:
        return any(package.kind is Kind.NPM for package in self.keep.packages)

    def _is_settled(self, path: Path) -> bool:
        try:
            return time.time() - path.stat().st_mtime >= self.settled
        except OSError:
            return False

    # What installs and ends have left.

    def _downloads(self) -> Iterator[Leftover]:
        wanted = {package_id(package) for package in (*self.keep.packages, WHEEL)}
        for path in sorted(self.staging.glob("*")):
            known = wanted | self.keep.installing
            if path.name not in known and path.name[0] != "." and self._is_settled(path):
                yield Leftover(What.DOWNLOAD, path.name, path)

    def _records(self) -> Iterator[Leftover]:
        known = self.keep.instances
        for path in sorted((self.ended / ".of").glob("*")):
            if path.name not in known:
                yield Leftover(What.RECORD, path.name, path)


def _move(path: Path, root: Path) -> None:
    path.rename(root / f"{TAKEN}{secrets.token_hex(8)}")


def _server(parts: Iterable[str]) -> ServerId | None:
    tenant, project, name = parts
    if tenant in RESERVED_TENANTS:
        return None
    try:
        return ServerId(tenant, None if project == "-" else project, name)
    except ValueError:
        return None


def _installed(store: Store) -> Iterator[tuple[Path, str]]:
    """Each package directory of the store, and its name for people."""
    for kind in Kind:
        for path in sorted((store.root / kind.value).glob("*")):
            scoped = path.name.startswith("@") and "@" not in path.name[1:]
            for each in sorted(path.glob("*")) if scoped else (path,):
                if each.is_dir() and not each.is_symlink():
                    yield each, str(each.relative_to(store.root / kind.value))


def _words(installed: Installed) -> Iterator[str]:
    for argv in installed.binaries.values():
        yield from argv
    yield from installed.path


def _package_of(word: str, store: Store) -> Path | None:
    """The package directory that a path lies in."""
    try:
        parts = Path(word).relative_to(store.root).parts
    except ValueError:
        return None
    depth = 3 if len(parts) > 2 and parts[1].startswith("@") else 2
    return store.root.joinpath(*parts[:depth]) if len(parts) >= depth else None


def _is_locked(store: Store, directory: Path) -> bool:
    """Whether somebody installs a version of this package now."""
    name = str(directory.relative_to(store.root)).rpartition("@")[0].replace("/", "-", 1)
    path = store.root / "locks" / f"{name.replace('/', '+')}.lock"
    try:
        with path.open("rb") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except OSError:
        return True
