"""Installing one version of a PyPI package into a venv of its own below the store."""

import hashlib
import re
import sys
from dataclasses import replace
from importlib.metadata import distributions
from pathlib import Path

from autobot_mcp_bridge.units.access.reach import SYSTEM_PATH, blocked_at
from autobot_mcp_bridge.units.access.root import is_root
from autobot_mcp_bridge.units.packages import pip, uv
from autobot_mcp_bridge.units.packages.job import InstallError, Job
from autobot_mcp_bridge.units.packages.specs import PackageSpec
from autobot_mcp_bridge.units.packages.store import (
    LOCK,
    Installed,
    Store,
    fresh_directory,
    replace_public,
)

# A Python that every uid can run, for when ours cannot be (one below root's home, say).
SYSTEM_PYTHON = Path("/usr/bin/python3")


def resolve(spec: PackageSpec, store: Store, job: Job) -> str:
    """The newest version that the range allows.

    Raises:
        InstallError: there is none, or the index does not answer.
    """
    base = base_python()
    found, wanted = uv.find(job), (_requirement(spec), *spec.needs)
    if found is not None:
        lock = uv.lock(found, wanted, base, store, job, fresh=spec.name)
    else:
        lock = pip.lock(wanted, base, store, job)
    return _pinned(lock, spec)


def newest(spec: PackageSpec, store: Store, job: Job) -> tuple[str, str]:
    """The newest version that the range allows by itself, and the newest of all.

    What the package needs is not asked for: what it cannot be installed with may make `resolve`
    choose an older one.

    Raises:
        InstallError: there is none, or the index does not answer.
    """
    base, uv_program = base_python(), uv.find(job)

    def ask(wanted: PackageSpec) -> str:
        requirement = _requirement(wanted)
        if uv_program is not None:
            text = uv.newest(uv_program, requirement, base, store, job, fresh=spec.name)
            return _pinned(text, wanted)
        return _pinned(pip.newest(requirement, base, store, job), wanted)

    allowed = ask(spec)
    return allowed, allowed if spec.version is None else ask(replace(spec, version=None))


def install(spec: PackageSpec, version: str, store: Store, job: Job) -> Installed:
    """Install the exact version afresh; the caller holds the package's lock.

    What is installed is written down with its hashes first and checked against them.

    Raises:
        InstallError: it failed, or the package is not what it was taken for.
    """
    base = base_python()
    directory = store.directory(spec, version)
    fresh_directory(directory)
    extras = f"[{','.join(spec.extras)}]" if spec.extras else ""
    wanted = (f"{spec.name}{extras}=={version}", *spec.needs)
    found = uv.find(job)
    if found is not None:
        text = uv.lock(found, wanted, base, store, job)
    else:
        text = pip.lock(wanted, base, store, job)
    replace_public(directory / LOCK, text)
    if found is not None:
        uv.fill(found, directory, base, store, job)
    else:
        pip.fill(directory, base, store, job)
    installed = _describe(spec, version, directory, text)
    store.complete(directory, installed)
    return installed


def base_python() -> Path:
    """The Python that packages are installed for: this one's own, if other uids can run it."""
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    if not is_root() or blocked_at(base) is None:
        return base
    if not SYSTEM_PYTHON.exists():
        raise InstallError(
            f"{base}: other users cannot run it, and there is no {SYSTEM_PYTHON}; "
            "run: apt-get install python3-venv"
        )
    return SYSTEM_PYTHON


def site_packages(directory: Path) -> Path:
    """Where the venv keeps its packages.

    Raises:
        InstallError: there is no venv.
    """
    found = sorted(directory.glob("lib/python3*/site-packages"))
    if not found:
        raise InstallError(f"{directory}: it holds no venv")
    return found[0]


def _requirement(spec: PackageSpec) -> str:
    extras = f"[{','.join(spec.extras)}]" if spec.extras else ""
    version = (spec.version or "").lstrip("@")
    return f"{spec.name}{extras}{version}"


def _pinned(lock: str, spec: PackageSpec) -> str:
    for line in lock.splitlines():
        name, equals, rest = line.partition("==")
        bare = re.sub(r"[-_.]+", "-", name.partition("[")[0].strip()).lower()
        if equals and bare == spec.name:
            return rest.split()[0].rstrip("\\").rstrip(";")
    raise InstallError(f"{spec.label}: no version of the package fits")


def _describe(spec: PackageSpec, version: str, directory: Path, lock: str) -> Installed:
    site, programs = site_packages(directory), directory / "bin"
    found = [
        dist
        for dist in distributions(path=[str(site)])
        if re.sub(r"[-_.]+", "-", dist.name).lower() == spec.name
    ]
    if not found:
        raise InstallError(f"{spec.label}: installed, and yet not there")
    python = str(programs / "python")
    binaries = {
        script.name: (python, str(programs / script.name))
        for script in found[0].entry_points.select(group="console_scripts")
        if (programs / script.name).is_file()
    }
    default = spec.name if spec.name in binaries else None
    default = default or next((n for n in binaries if n.replace("_", "-") == spec.name), None)
    default = default or (next(iter(binaries)) if len(binaries) == 1 else None)
    digest = "sha256:" + hashlib.sha256(lock.encode()).hexdigest()
    return Installed(version, digest, binaries, default, (str(programs), *SYSTEM_PATH))
