"""Resolving and installing with pip, where there is no uv: one pip in the store serves all venvs."""

import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from autobot_mcp_bridge.units.access.root import WHEELS_ONLY, is_root
from autobot_mcp_bridge.units.packages.job import InstallError, Job
from autobot_mcp_bridge.units.packages.store import LOCK, Store, fresh_directory

# What `--dry-run --report` and `--python` need.
OPTIONS = ("--no-input", "--disable-pip-version-check", "--quiet")


def lock(requirements: Sequence[str], base: Path, store: Store, job: Job) -> str:
    """Everything that the requirements need, pinned, with hashes, as pip's requirements file.

    Raises:
        InstallError: pip failed.
    """
    return _lock(requirements, [], base, store, job)


def _lock(
    requirements: Sequence[str], options: list[str], base: Path, store: Store, job: Job
) -> str:
    words = [*_pip(base, store, job), "install", "--dry-run", "--ignore-installed", "--report", "-"]
    words += [*OPTIONS, *options, *_only_wheels(), *requirements]
    output = job.run(words, env=job.environ, cwd=store.root)
    try:
        rows = [_row(item) for item in json.loads(output)["install"]]
    except (ValueError, KeyError, TypeError) as error:
        raise InstallError("pip's report is not understood") from error
    return "".join(sorted(rows))


def newest(requirement: str, base: Path, store: Store, job: Job) -> str:
    """The package alone, pinned to the newest version that fits.

    Raises:
        InstallError: pip failed.
    """
    return _lock([requirement], ["--no-deps"], base, store, job)


def fill(directory: Path, base: Path, store: Store, job: Job) -> None:
    """Make the venv in the directory and install what the lock in it names."""
    job.run([base, "-m", "venv", "--without-pip", directory], env=job.environ, cwd=store.root)
    words = [*_pip(base, store, job), "--python", directory / "bin/python", "install", *OPTIONS]
    words += ["--require-hashes", "--no-deps", "--requirement", directory / LOCK, *_only_wheels()]
    job.run(words, env=job.environ, cwd=store.root)


def _row(item: dict[str, object]) -> str:
    match item:
        case {
            "metadata": {"name": str(name), "version": str(version)},
            "download_info": {"archive_info": {"hashes": {"sha256": str(digest)}}},
        }:
            return f"{name}=={version} --hash=sha256:{digest}\n"
    raise InstallError("pip's report names a package without a hash")


def _pip(base: Path, store: Store, job: Job) -> list[str | Path]:
    """The words that start pip: our own venv's, or the store's small one, made at the first need.

    Raises:
        InstallError: this Python cannot make one.
    """
    # An installed product has one beside it, for the same Python (units/host/program.py).
    own = Path(sys.prefix, "bin/python")
    if sys.prefix != sys.base_prefix and find_spec("pip") is not None and not is_root():
        return [own, "-m", "pip"]
    home = store.root / "tools" / f"pip-{sys.version_info[0]}.{sys.version_info[1]}"
    done = home / ".complete"
    with store.locked("pip", job):
        if not done.exists():
            fresh_directory(home)
            try:
                job.run([base, "-m", "venv", home], env=job.environ, cwd=store.root)
            except InstallError as error:
                job.check("venv")
                raise InstallError(
                    f"{base} cannot make a venv ({error}); run: apt-get install python3-venv, "
                    "or put uv on PATH"
                ) from error
            done.touch()
    return [home / "bin/python", "-m", "pip"]


def _only_wheels() -> list[str | Path]:
    return [WHEELS_ONLY] if is_root() else []
