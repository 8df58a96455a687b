"""Virtual environments of this checkout: made once, refreshed when something changed.

Standard library only: this runs with the host's Python before anything is installed. uv installs
where it can be had (on PATH, or its wheel by pip), since it is many times faster; else pip.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "supervisor"))

from autobot_mcp_bridge.units.packages.pip_settings import uv_environment  # noqa: E402 - after the path

PROJECT = ROOT / "pyproject.toml"
PACKAGE = "autobot-mcp-bridge"
EDITABLES = "editables>=0.5"  # what hatchling may ask for in front of an editable install
PROGRESS_EVERY = 5.0  # seconds between signs of life
STEP_TIMEOUT = 1800.0  # seconds for one program; a slow registry has been seen to need 500
LAST_LINES = 25


class SetupError(Exception):
    """The set-up cannot go on; the message says why and what helps."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a virtual environment is to hold.

    Attributes:
        groups: dependency groups of pyproject.toml.
        editable: whether the checkout itself is used, or a copy of its package.
        more: requirements beyond the project's own.
        extras: the project's optional dependencies.
    """

    groups: tuple[str, ...] = ()
    editable: bool = True
    more: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()

    def digest(self, python: Path) -> str:
        text = f"{self} {python} {Path(__file__).read_text(encoding='utf-8')}"
        return hashlib.sha256(text.encode() + PROJECT.read_bytes()).hexdigest()


def make(folder: Path, base: Path, wanted: Wanted) -> None:
    """Bring the environment up to date; quick where nothing changed.

    Raises:
        SetupError: it cannot be.
    """
    digest = wanted.digest(base)
    stamp, copied = folder / ".dependencies", folder / ".package"
    if not _fits(stamp, digest):
        copied.unlink(missing_ok=True)
        _create(folder, base)
        installer = _installer(folder)
        _step("installing the dependencies", [*installer, *_dependencies(wanted)])
        _link_or_copy(folder, wanted)
        if not wanted.editable:
            copied.write_text(_source_digest(), encoding="utf-8")
        _open_to_all(folder)
        stamp.write_text(digest, encoding="utf-8")
    elif not wanted.editable and not _fits(copied, _source_digest()):
        _link_or_copy(folder, wanted)
        _open_to_all(folder)
        copied.write_text(_source_digest(), encoding="utf-8")


def _fits(stamp: Path, digest: str) -> bool:
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == digest


def _create(folder: Path, base: Path) -> None:
    if (folder / "bin/python").exists():
        return  # what is installed there is brought up to date; a link to a Python gone is not it
    if folder.exists():
        shutil.rmtree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        _step(f"making {folder}", [base, "-m", "venv", folder])
    except SetupError as error:
        if shutil.which("uv") is None:
            raise SetupError(f"{error}\nrun: apt-get install python3-venv") from error
        _step(f"making {folder} with uv", ["uv", "venv", "--seed", "--python", base, folder])


def _installer(folder: Path) -> list[str | Path]:
    """The words in front of the requirements."""
    python = folder / "bin/python"
    uv = shutil.which("uv") or _uv_wheel(folder)
    if uv is None:
        return [python, "-m", "pip", "install", "--disable-pip-version-check"]
    return [uv, "pip", "install", "--python", python]


def _uv_wheel(folder: Path) -> str | None:
    pip: list[str | Path] = [
        folder / "bin/python",
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
    ]
    try:
        _step("installing uv", [*pip, "--only-binary=:all:", "uv"])
    except SetupError as error:
        print(f"uv cannot be had, pip will take longer: {error}", flush=True)
        return None
    return str(folder / "bin/uv")


def _dependencies(wanted: Wanted) -> list[str]:
    """Every requirement, written out: only the newest pip understands groups."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    found = [*project["project"]["dependencies"], *wanted.more]
    # The backend too: a later change of the source is then installed without the network.
    found += [*project["build-system"]["requires"], EDITABLES]
    for name in wanted.extras:
        found += project["project"]["optional-dependencies"][name]
    for name in wanted.groups:
        found += _group(project["dependency-groups"], name)
    return list(dict.fromkeys(found))


def _group(groups: Mapping[str, Sequence[str | Mapping[str, str]]], name: str) -> Iterable[str]:
    for item in groups[name]:
        if isinstance(item, str):
            yield item
        else:
            yield from _group(groups, item["include-group"])


def _link_or_copy(folder: Path, wanted: Wanted) -> None:
    how = ["--editable"] if wanted.editable else []
    words = ["--no-deps", "--no-build-isolation", "--force-reinstall", *how, str(ROOT)]
    _step(f"installing {PACKAGE}", [*_installer(folder), *words])


def _source_digest() -> str:
    digest = hashlib.sha256()
    for top in ("supervisor", "templates"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _open_to_all(folder: Path) -> None:
    """As root, servers run as other uids, which must read this whatever the umask is."""
    if os.geteuid() == 0:
        subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True, timeout=STEP_TIMEOUT)


def _step(what: str, words: Sequence[str | Path]) -> None:
    """Run one program, its output kept for the case that it fails, with signs of life."""
    env = uv_environment(os.environ)
    env.pop("VIRTUAL_ENV", None)
    print(f"{what} …", flush=True)
    began = time.monotonic()
    command = [str(word) for word in words]
    try:
        process = subprocess.Popen(
            command,
            env=env,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            umask=0o022,
        )
    except OSError as error:
        raise SetupError(f"{command[0]}: {error.strerror}") from error
    while True:
        try:
            output, _ = process.communicate(timeout=PROGRESS_EVERY)
            break
        except subprocess.TimeoutExpired:
            passed = time.monotonic() - began
            print(f"{what} …  {passed:.0f} s", flush=True)
            if passed > STEP_TIMEOUT:
                process.kill()
    if process.returncode != 0:
        tail = "\n".join(output.splitlines()[-LAST_LINES:])
        raise SetupError(f"{what}: status {process.returncode}\n{tail}")
