"""From a PackageSpec to something that can be started. Everything here blocks: use a thread."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.units.access.reach import in_reach
from autobot_mcp_bridge.units.packages import npm, pypi
from autobot_mcp_bridge.units.packages.job import InstallError, Job
from autobot_mcp_bridge.units.packages.specs import Kind, PackageSpec
from autobot_mcp_bridge.units.packages.store import Installed, Store

_KINDS = {Kind.NPM: npm, Kind.PYPI: pypi}


def install_package(spec: PackageSpec, store: Store, job: Job) -> Installed:
    """Install what the spec means unless it is there; a range is resolved once and for all.

    Several processes and threads may do this at once: one installs, the others find it done.

    Raises:
        InstallError: it failed; what is half installed is removed at the next try.
    """
    store.prepare()
    with store.locked(f"{spec.kind.value}-{spec.directory_name}", job):
        found = store.find(spec)
        if found is not None:
            return found
        kind = _KINDS[spec.kind]
        version = spec.version if spec.exact else store.resolved(spec)
        if version is None:
            version = kind.resolve(spec, store, job)
        done = store.read(store.directory(spec, version))
        if done is None:
            done = kind.install(spec, version, store, job)
        if not spec.exact:
            # Remembered last: a version that cannot be installed is chosen anew the next time.
            store.remember(spec, version, job)
        return done


def upgrade_package(
    spec: PackageSpec, binaries: Iterable[str | None], store: Store, job: Job
) -> Installed:
    """Install the newest version that an open spec allows; once it is whole, the spec means it.

    The version that was in force stays beside it.

    Args:
        spec: of the package.
        binaries: the programs that servers need of it; None is the package's own one.
        store: where it is put.
        job: the frame.

    Raises:
        InstallError: it failed, or lacks one of the programs; the spec means what it did before.
    """
    store.prepare()
    with store.locked(f"{spec.kind.value}-{spec.directory_name}", job):
        kind = _KINDS[spec.kind]
        version = kind.resolve(spec, store, job)
        done = store.read(store.directory(spec, version))
        if done is None:
            done = kind.install(spec, version, store, job)
        for binary in binaries:
            try:
                done.argv(binary)
            except InstallError as error:
                raise InstallError(f"version {version}: {error}") from None
        store.remember(spec, version, job)
        return done


def newest_versions(spec: PackageSpec, store: Store, job: Job) -> tuple[str, str]:
    """The newest version that the spec allows, and the newest of all; nothing is installed.

    Raises:
        InstallError: there is none, or the registry does not answer.
    """
    newest = npm.newest if spec.kind is Kind.NPM else pypi.newest
    if spec.version is None or not spec.exact:
        return newest(spec, store, job)
    return spec.version, newest(replace(spec, version=None, exact=False), store, job)[1]


def package_command(spec: PackageSpec, installed: Installed) -> Command:
    """How the installed program is started.

    Raises:
        InstallError: the package has no such program, or a server's uid cannot reach it.
    """
    argv = installed.argv(spec.binary)
    in_reach(Path(argv[0]))
    return Command((*argv, *spec.args), {"PATH": os.pathsep.join(installed.path)})
