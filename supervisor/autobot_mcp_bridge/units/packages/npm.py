"""Installing one version of an npm package below the store, and reading what it offers."""

import json
import os
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.units.access.reach import SYSTEM_PATH
from autobot_mcp_bridge.units.access.root import is_root
from autobot_mcp_bridge.units.packages.job import InstallError, Job
from autobot_mcp_bridge.units.packages.node import Node, get_node
from autobot_mcp_bridge.units.packages.specs import PackageSpec
from autobot_mcp_bridge.units.packages.store import (
    Installed,
    Store,
    fresh_directory,
    replace_public,
)

OPTIONS = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=warn")
# What the private cache holds is not asked for again; npm asks anew by itself when a version is not
# in what it holds.
CACHED = "--prefer-offline"
# The registry is asked whether what the cache holds is still so.
FRESH = "--prefer-online"


def resolve(spec: PackageSpec, store: Store, job: Job) -> str:
    """The newest version that the range allows; the registry's `latest` where it does.

    Raises:
        InstallError: there is none, or the registry does not answer.
    """
    return newest(spec, store, job)[0]


def newest(spec: PackageSpec, store: Store, job: Job) -> tuple[str, str]:
    """The version that `resolve` chooses, and the one that the registry calls its latest.

    Raises:
        InstallError: as `resolve`.
    """
    node = get_node(store, job)
    wanted = f"{spec.name}@{spec.version or 'latest'}"
    words = ("view", wanted, "version", "dist-tags.latest", "--json", FRESH)
    output = _npm(node, words, store, job)
    try:
        found = json.loads(output or "[]")
        rows = found if isinstance(found, list) else [found]
        versions = [str(row["version"]) for row in rows]
        latest = str(rows[-1]["dist-tags.latest"]) if rows else ""
    except (ValueError, TypeError, KeyError) as error:
        raise InstallError(f"npm view {wanted}: an answer that is not understood") from error
    if not versions:
        raise InstallError(f"npm view {wanted}: no version of the package fits")
    return latest if latest in versions else max(versions, key=_order), latest


def install(spec: PackageSpec, version: str, store: Store, job: Job) -> Installed:
    """Install the exact version afresh; the caller holds the package's lock.

    Raises:
        InstallError: npm failed, or the package is not what it was taken for.
    """
    node = get_node(store, job)
    directory = store.directory(spec, version)
    fresh_directory(directory)
    # Without a manifest of its own npm would look for one in the directories above.
    replace_public(directory / "package.json", '{"private": true}\n')
    words = ["install", CACHED, "--omit=dev", "--save-exact", f"--prefix={directory}"]
    if is_root():
        # A stranger's install script is never run as root; most packages have none.
        words.append("--ignore-scripts")
    _npm(node, (*words, f"{spec.name}@{version}"), store, job, cwd=directory)
    package = directory / "node_modules" / spec.name
    lock = _read(directory / "package-lock.json")["packages"]
    entry = lock.get(f"node_modules/{spec.name}", {})
    if entry.get("version") != version:
        raise InstallError(f"npm installed {entry.get('version')} where {version} was asked for")
    if is_root():
        for name in sorted(name for name, value in lock.items() if value.get("hasInstallScript")):
            job.note(f"{name}: its install script was not run, since this is root")
    binaries = _binaries(package, directory, node)
    own = spec.name.rpartition("/")[2]
    default = own if own in binaries else _only(_own_names(package), binaries)
    path = (str(directory / "node_modules/.bin"), str(node.node.parent), *SYSTEM_PATH)
    integrity = str(entry.get("integrity", ""))
    installed = Installed(version, integrity, binaries, default, tuple(dict.fromkeys(path)))
    store.complete(directory, installed)
    return installed


def _npm(
    node: Node, words: tuple[str, ...], store: Store, job: Job, cwd: Path | None = None
) -> str:
    path = os.pathsep.join((str(node.node.parent), job.environ.get("PATH", os.defpath)))
    # An ordinary variable would lose against `npm_config_cache` of a caller that npm itself started.
    cache = f"--cache={store.root / 'cache/npm'}"
    return job.run(
        (*node.npm, *words, *OPTIONS, cache),
        env={**job.environ, "PATH": path},
        cwd=cwd or store.root,
    )


def _own_names(package: Path) -> dict[str, str]:
    """The package's `bin`: program name to the file in the package."""
    manifest = _read(package / "package.json")
    declared = manifest.get("bin", {})
    if isinstance(declared, str):
        return {str(manifest.get("name", "")).rpartition("/")[2]: declared}
    return {str(name): str(file) for name, file in declared.items()}


def _binaries(package: Path, directory: Path, node: Node) -> dict[str, tuple[str, ...]]:
    """Every program of the package and of what it depends on, its own last so that they win."""
    links = directory / "node_modules/.bin"
    files = {link.name: link.resolve() for link in links.iterdir()} if links.is_dir() else {}
    files |= {name: (package / file).resolve() for name, file in _own_names(package).items()}
    inside = (directory / "node_modules").resolve()
    return {
        name: _argv(file, node)
        for name, file in sorted(files.items())
        if file.is_file() and file.is_relative_to(inside)
    }


def _argv(file: Path, node: Node) -> tuple[str, ...]:
    with file.open("rb") as opened:
        first = opened.readline(256)
    if first.startswith(b"#!") and b"node" not in first:
        return (str(file),)  # a shell script, say
    return (str(node.node), str(file))


def _only(own: dict[str, str], binaries: dict[str, tuple[str, ...]]) -> str | None:
    """The one program that npx would take: the only one, or the first of several equal ones."""
    names = [name for name in own if name in binaries]
    return names[0] if names and len(set(own.values())) == 1 else None


def _order(version: str) -> tuple[tuple[int, ...], bool]:
    core, dash, _ = version.partition("-")
    return tuple(int(part) for part in core.split(".") if part.isdigit()), not dash


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InstallError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise InstallError(f"{path}: not an object")
    return found
