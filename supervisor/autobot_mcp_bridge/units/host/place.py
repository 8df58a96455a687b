"""Laying the files that are the same on every host, below a root directory; standard library only.

What is there already as it should be is not touched, so that whoever calls learns what changed.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from autobot_mcp_bridge.model.errors import BridgeError
from autobot_mcp_bridge.units.host import static

HOME = "usr/lib/mcp-bridge"
MANIFEST = f"{HOME}/installed.json"
COMMAND = "usr/bin/mcp-bridge"
PROGRAM = f"{HOME}/venv"
LINKS = {**static.ALIASES, COMMAND: f"../lib/mcp-bridge/{Path(PROGRAM).name}/bin/mcp-bridge"}
FORMAT = 1
_DIRECTORY = 0o755
_FILE = 0o644


class PackagedError(BridgeError):
    """The files belong to a package manager."""

    exit_code = 69  # EX_UNAVAILABLE


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an installation has put in place, so that the next one can take away what is old.

    Attributes:
        files: paths below the root, links too.
        enabled: the units that it has enabled, once each: what a person disables stays so.
        package: whose files they are, where a package manager has laid them.
        program: the name of the venv that the proxy was last started from.
    """

    version: str
    files: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()
    package: str | None = None
    program: str = ""


def read_manifest(root: Path) -> Manifest | None:
    """The manifest; None where nothing is installed, or not to its end."""
    try:
        found = json.loads((root / MANIFEST).read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            return None
        paths, enabled = (tuple(map(str, found[name])) for name in ("files", "enabled"))
        version, package = str(found["version"]), found.get("package")
        program = str(found.get("program", ""))
        return Manifest(version, paths, enabled, package, program)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def refuse_packaged(manifest: Manifest | None) -> None:
    """Leave a package's files to its manager, whose own record would be wrong otherwise.

    Raises:
        PackagedError: they are a package's.
    """
    if manifest is not None and manifest.package is not None:
        raise PackagedError(
            f"installed by the package {manifest.package}: "
            f"use apt (apt-get install, remove or purge {manifest.package})"
        )


def write_manifest(root: Path, manifest: Manifest) -> None:
    text = json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1) + "\n"
    _replace(root / MANIFEST, text.encode())


def place(root: Path, pages: Mapping[str, Path] = MappingProxyType({})) -> list[str]:
    """Lay every file and link; the paths, below the root, of those that were not so before.

    Args:
        root: below which they are laid.
        pages: further files, place below the root to what is copied there.

    Raises:
        OSError: one cannot be written.
    """
    changed = []
    for name, path in static.FILES.items():
        source = files("autobot_mcp_bridge").joinpath("_templates", name)
        if _lay(root / path, source.read_bytes()):
            changed.append(path)
    for path, file in pages.items():
        if _lay(root / path, file.read_bytes()):
            changed.append(path)
    for path, target in LINKS.items():
        if _link(root / path, target):
            changed.append(path)
    return changed


def placed() -> tuple[str, ...]:
    """All that `place` lays but pages."""
    return (*static.FILES.values(), *LINKS)


def remove(root: Path, paths: Iterable[str]) -> list[str]:
    """Take files and links away; those that were there. Directories of ours go when empty."""
    gone = []
    for path in paths:
        file = root / path
        if file.is_symlink() or file.is_file():
            file.unlink()
            gone.append(path)
        if file.parent.name == "mcp-bridge" and file.parent.is_dir() and not _holds(file.parent):
            file.parent.rmdir()
    return gone


def public_parents(path: Path) -> None:
    """Make the directories above it that are missing, whatever the umask is."""
    missing = [parent for parent in path.parents if not parent.exists()]
    for directory in reversed(missing):
        directory.mkdir()
        directory.chmod(_DIRECTORY)


def replace_link(path: Path, target: str) -> None:
    """Make the link, or point it elsewhere at once."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    draft.replace(path)


def _lay(path: Path, data: bytes) -> bool:
    try:
        same = not path.is_symlink() and path.read_bytes() == data
    except OSError:
        same = False
    if same:
        if path.stat().st_mode & 0o7777 == _FILE:
            return False
        path.chmod(_FILE)
        return True
    public_parents(path)
    _replace(path, data)
    return True


def _replace(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.new")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.chmod(_FILE)
    draft.replace(path)


def _link(path: Path, target: str) -> bool:
    if path.is_symlink() and str(path.readlink()) == target:
        return False
    public_parents(path)
    replace_link(path, target)
    return True


def _holds(directory: Path) -> bool:
    return any(directory.iterdir())
