"""From a PackageSpec to something that can be started. Everything here blocks: use a thread."""

import os
from pathlib import Path

from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.units import npm, pypi
from autobot_mcp_bridge.units.job import Job
from autobot_mcp_bridge.units.reach import in_reach
from autobot_mcp_bridge.units.specs import Kind, PackageSpec
from autobot_mcp_bridge.units.store import Installed, Store

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


def package_command(spec: PackageSpec, installed: Installed) -> Command:
    """How the installed program is started.

    Raises:
        InstallError: the package has no such program, or a server's uid cannot reach it.
    """
    argv = installed.argv(spec.binary)
    in_reach(Path(argv[0]))
    return Command((*argv, *spec.args), {"PATH": os.pathsep.join(installed.path)})
