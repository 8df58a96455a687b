"""Resolving and installing with uv, where there is one: beside this Python, or on PATH."""

from collections.abc import Sequence
from pathlib import Path

from autobot_mcp_bridge.units.access.reach import find_program
from autobot_mcp_bridge.units.access.root import WHEELS_ONLY, is_root
from autobot_mcp_bridge.units.packages.job import Job
from autobot_mcp_bridge.units.packages.pip_settings import uv_environment
from autobot_mcp_bridge.units.packages.store import LOCK, Store


def find(job: Job) -> Path | None:
    return find_program("uv", job.environ)


def lock(
    uv: Path,
    requirements: Sequence[str],
    base: Path,
    store: Store,
    job: Job,
    *,
    fresh: str | None = None,
) -> str:
    """Everything that the requirements need, pinned, with hashes, as pip's requirements file.

    Args:
        uv: the program.
        requirements: packages, each with a range or without.
        base: the Python that it is for.
        store: whose cache is used.
        job: the frame.
        fresh: a package that the index is asked for anew; uv's cache holds its versions for minutes.

    Raises:
        InstallError: uv failed.
    """
    options = ["--generate-hashes", *_refresh(fresh)]
    return _compile(uv, requirements, options, base, store, job)


def newest(
    uv: Path, requirement: str, base: Path, store: Store, job: Job, *, fresh: str | None = None
) -> str:
    """The package alone, pinned to the newest version that fits; otherwise as `lock`."""
    return _compile(uv, [requirement], ["--no-deps", *_refresh(fresh)], base, store, job)


def _refresh(package: str | None) -> list[str]:
    return [] if package is None else ["--refresh-package", package]


def _compile(
    uv: Path, requirements: Sequence[str], options: list[str], base: Path, store: Store, job: Job
) -> str:
    wanted = job.log.with_name(f"{job.log.stem}.in")
    wanted.write_text("".join(f"{one}\n" for one in requirements), encoding="utf-8")
    words: list[str | Path] = [
        "pip",
        "compile",
        wanted,
        "--python",
        base,
        "--no-annotate",
    ]
    words += ["--no-header", "--quiet", *options, *_only_wheels()]
    try:
        return job.run([uv, *words], env=_environment(store, job), cwd=store.root)
    finally:
        wanted.unlink(missing_ok=True)


def fill(uv: Path, directory: Path, base: Path, store: Store, job: Job) -> None:
    """Make the venv in the directory and install what the lock in it names."""
    env = _environment(store, job)
    # The lock keeps to them already, and with hashes uv refuses those that pin nothing.
    env.pop("UV_CONSTRAINT", None)
    job.run([uv, "venv", "--allow-existing", "--python", base, directory], env=env, cwd=store.root)
    words: list[str | Path] = [
        "pip",
        "install",
        "--python",
        directory / "bin/python",
        "--require-hashes",
    ]
    # As pip does: the servers cannot write there, and would compile all of it at each start.
    words += ["--compile-bytecode", "--requirement", directory / LOCK, *_only_wheels()]
    job.run([uv, *words], env=env, cwd=store.root)


def _only_wheels() -> list[str | Path]:
    return [WHEELS_ONLY] if is_root() else []


def _environment(store: Store, job: Job) -> dict[str, str]:
    env = uv_environment(job.environ)
    # The caller may have a venv active; uv must not look at it.
    env.pop("VIRTUAL_ENV", None)
    return {**env, "UV_CACHE_DIR": str(store.root / "cache/uv")}
