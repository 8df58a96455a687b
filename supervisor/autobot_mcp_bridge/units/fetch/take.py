"""What mcp-bridge-fetch@.service runs at its end, as root: take the package into the store.

    python3 -I -m autobot_mcp_bridge.units.fetch.take ID

As ExecStopPost=: whatever the install has started is dead by then (systemd.service(5)), which is
not so at ExecStartPost=. Nothing in the unit's directory is believed: from it come files, which are
copied, a version, and the programs' names, all checked; which package it is, root's request says.
"""

import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from autobot_mcp_bridge.config.places import resolve_places
from autobot_mcp_bridge.units.access.reach import SYSTEM_PATH
from autobot_mcp_bridge.units.disk.trees import remove_tree
from autobot_mcp_bridge.units.fetch.copying import Copy
from autobot_mcp_bridge.units.fetch.fetches import Fetches, Request, Result
from autobot_mcp_bridge.units.fetch.install import FAILED
from autobot_mcp_bridge.units.packages.job import InstallError, Job
from autobot_mcp_bridge.units.packages.node import WHEEL
from autobot_mcp_bridge.units.packages.specs import PackageSpec
from autobot_mcp_bridge.units.packages.store import (
    MARKER,
    RESOLVED,
    Installed,
    Resolution,
    Store,
    public_directory,
    resolution_key,
)

STAGING = Path("/var/lib/private/mcp-bridge-fetch")
MOST_WORDS = 4096  # bytes of the installer's own words that are kept
MOST_MARKER = 1 << 20
MOST_PROGRAMS = 1000
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+!_-]{0,127}")
_PROGRAM = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9._+@-]{0,127}")
_RUNTIME = re.compile(r"node|nodejs|python3?(\.\d+)?")


def main(ident: str) -> int:
    places = resolve_places(uid=0, environ={})
    store = Store(places.packages)
    fetches = Fetches(places.state_dir, store)
    staging = STAGING / ident
    os.umask(0o022)
    request = Request.decode(fetches.request_file(ident).read_bytes())
    try:
        result = _take(request, staging, store, ident)
    except (InstallError, OSError) as error:
        result = Result(str(error), digest=request.digest)
    finally:
        with suppress(OSError):
            remove_tree(store.root / f".incoming-{ident}")
    fetches.finish(ident, result)
    if not result.why:
        # What has failed keeps its downloads for the next try.
        with suppress(OSError):
            remove_tree(staging)
    print(result.why or f"{request.package.label} is in the store", flush=True)
    return 0


def _take(request: Request, staging: Path, store: Store, ident: str) -> Result:
    if os.environ.get("SERVICE_RESULT") != "success":
        return _failure(request, staging)
    spec = request.package
    store.prepare()
    version = spec.version if spec.exact else _resolved(spec, staging)
    if version is None or not _VERSION.fullmatch(version):
        raise InstallError("the installer names no version")
    final = store.directory(spec, version)
    if store.read(final) is None:
        source = staging / final.relative_to(store.root)
        installed = check(_json(source / MARKER, MOST_MARKER), version, final, store)
        incoming = store.root / f".incoming-{ident}"
        remove_tree(incoming)
        incoming.mkdir(mode=0o755)
        skip = frozenset({MARKER})
        Copy(PurePosixPath(final), staging.stat().st_uid, skip).run(source, incoming)
        public_directory(final.parent)
        if final.exists() and store.read(final) is None:
            remove_tree(final)  # of an install that was cut off
        os.sync()  # the marker must not outlive the files in a power cut
        store.complete(incoming, installed)
        if not final.exists():
            incoming.rename(final)
    if not spec.exact:
        store.remember(spec, version, Job(store.log_file("fetch"), {}))
    if store.find(spec) is None:
        raise InstallError("it was installed, and is not there any more")
    return Result(digest=request.digest)


def _failure(request: Request, staging: Path) -> Result:
    """The installer's own words, where it had the time to say any."""
    code, status = os.environ.get("EXIT_CODE", ""), os.environ.get("EXIT_STATUS", "")
    result = os.environ.get("SERVICE_RESULT", "")
    why, needs_node = f"the install ended with {result}: {code} {status}".rstrip(), False
    if code == "exited":
        try:
            said = _json(staging / FAILED, 4 * MOST_WORDS)
            why, needs_node = str(said["why"])[:MOST_WORDS], said.get("needs_node") is True
        except (InstallError, LookupError):
            pass
    shown = "".join(c if c.isprintable() else " " for c in why)
    return Result(shown or "the installer says nothing", needs_node, request.digest)


def _resolved(spec: PackageSpec, staging: Path) -> str | None:
    found = Resolution.read(_json(staging / RESOLVED, MOST_MARKER).get(resolution_key(spec)))
    return found.version if found is not None else None


def _json(path: Path, most: int) -> dict[str, Any]:
    """A file of the stranger's: bounded, and no link, device or pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            text = file.read(most + 1)
        found = json.loads(text) if len(text) <= most else None
    except (OSError, ValueError, RecursionError) as error:
        raise InstallError(f"{path.name} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise InstallError(f"{path.name}: not an object of at most {most} bytes")
    return found


def check(found: dict[str, Any], version: str, final: Path, store: Store) -> Installed:
    """The marker's content, if every word of it may stand in a unit.

    Raises:
        InstallError: one may not.
    """
    try:
        binaries = {
            str(name): tuple(map(str, words)) for name, words in dict(found["binaries"]).items()
        }
        integrity, default = str(found["integrity"]), found["default"]
        path = tuple(map(str, found["path"]))
    except (LookupError, TypeError, ValueError) as error:
        raise InstallError(f"{MARKER}: {error}") from None
    if found.get("version") != version or len(binaries) > MOST_PROGRAMS or len(integrity) > 1024:
        raise InstallError(f"{MARKER}: not the package that was asked for")
    if default is not None and default not in binaries:
        raise InstallError(f"{MARKER}: its own program is not among its programs")
    for name, words in binaries.items():
        good = _PROGRAM.fullmatch(name) and words and _may_run(words[0], final, store)
        if not good or not all(_within(word, final) for word in words[1:]):
            raise InstallError(f"{MARKER}: program {ascii(name)[:100]} is not of this package")
    home = store.directory(WHEEL, str(WHEEL.version))
    runtimes = {os.path.dirname(words[0]) for words in binaries.values()}  # noqa: PTH120 - words
    for place in path:
        known = place in SYSTEM_PATH or place in runtimes
        if not known and not _within(place, final) and not _within(place, home):
            raise InstallError(f"{MARKER}: {ascii(place)[:200]} is no directory for PATH")
    return Installed(version, integrity, binaries, default, path)


def _may_run(program: str, final: Path, store: Store) -> bool:
    """A file of the package, or a node or python of the host's that is root's alone."""
    home = store.directory(WHEEL, str(WHEEL.version))
    if _within(program, final) or _within(program, home):
        return True
    path = Path(program)
    if not path.is_absolute() or not _RUNTIME.fullmatch(path.name):
        return False
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid == 0 and not status.st_mode & 0o022


def _within(text: str, directory: Path) -> bool:
    path = PurePosixPath(text)
    return path.is_relative_to(directory) and ".." not in path.parts


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
