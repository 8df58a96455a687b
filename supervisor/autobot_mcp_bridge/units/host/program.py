"""The program's own venv below /usr/lib/mcp-bridge; standard library only.

    venv -> venv-<digest>      exchanged at once, when the new one is complete
    venv-<digest>/             of the code with that digest and the host's Python

A proxy that runs while its program is exchanged goes on with the old one's files, which go last.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from autobot_mcp_bridge.units.host import source
from autobot_mcp_bridge.units.host.place import HOME, PROGRAM, public_parents, replace_link
from autobot_mcp_bridge.units.packages.job import InstallError, Job, without_log

PYTHON = "/usr/bin/python3"
OLDEST = (3, 11)
# Taken where there is a wheel for this host; everything works without.
OPTIONAL = (
    *("dbus-fast>=5,<6", "pyjwt[crypto]>=2.13,<3"),
    *("google-re2>=1.1.20251105", "jsonschema-rs>=0.50,<1", "pyyaml>=6,<7", "redis>=6,<9"),
)
COMPLETE = ".complete"
ASK_TIMEOUT = 30.0  # seconds for the host's Python to tell its version
# Of the caller's environment: what would turn pip away from the venv.
_NOT_HANDED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_USER", "PIP_TARGET", "PIP_PREFIX")
_ASK = "import sys; print(*sys.version_info[:3], sys.implementation.cache_tag)"
_QUIET = ("--disable-pip-version-check", "--no-input", "--quiet", "--no-compile")


class Program:
    """The venv below one root directory. Everything blocks: pip may download for minutes."""

    def __init__(self, root: Path, say: Callable[[str], None]) -> None:
        self._root = root
        self._say = say

    def ensure(self, environ: Mapping[str, str]) -> bool:
        """Make the venv of the running code and this host's Python; whether it was not there.

        Raises:
            InstallError: it cannot be made; the one before stays.
        """
        home = self._root / HOME
        if source.PACKAGE.is_relative_to(home):
            return False  # it is what is running
        wanted = home / f"venv-{source.digest()}-{_python_tag()}"
        link = self._root / PROGRAM
        made = not (wanted / COMPLETE).exists()
        if made:
            self._make(wanted, {k: v for k, v in environ.items() if k not in _NOT_HANDED})
        if link.is_symlink() and str(link.readlink()) == wanted.name:
            return made
        if link.is_dir() and not link.is_symlink():
            shutil.rmtree(link)
        replace_link(link, wanted.name)
        return True

    def name(self) -> str:
        """The venv's own, which tells one installed program from another."""
        return (self._root / PROGRAM).resolve().name

    def forget_older(self) -> None:
        """Remove every venv but the one that counts."""
        link = self._root / PROGRAM
        kept = str(link.readlink()) if link.is_symlink() else ""
        for old in (self._root / HOME).glob("venv-*"):
            if old.name != kept:
                shutil.rmtree(old)

    def _make(self, wanted: Path, environ: Mapping[str, str]) -> None:
        if wanted.exists():
            shutil.rmtree(wanted)  # of a run that was cut off
        public_parents(wanted)
        with tempfile.TemporaryDirectory(prefix="mcp-bridge-") as name:
            folder = Path(name)
            job = Job(folder / "install.log", environ)
            job.note(f"installing into {wanted}")
            try:
                self._fill(wanted, folder, job)
            except InstallError as error:
                shutil.rmtree(wanted, ignore_errors=True)
                # The log goes with its folder: its last lines stand in the message already.
                raise InstallError(without_log(str(error))) from None
        (wanted / COMPLETE).touch()

    def _fill(self, wanted: Path, folder: Path, job: Job) -> None:
        self._say(f"making a venv with {PYTHON}")
        try:
            job.run([PYTHON, "-m", "venv", wanted], env=job.environ, cwd=folder)
        except InstallError as error:
            raise InstallError(f"{error}\nrun: apt-get install python3-venv") from None
        pip: list[str | Path] = [wanted / "bin/python", "-m", "pip", "install", *_QUIET]
        self._say("installing the program and what it needs with pip; this may take a minute")
        job.run([*pip, source.wheel(folder)], env=job.environ, cwd=folder)
        for requirement in OPTIONAL:
            try:
                job.run([*pip, "--only-binary=:all:", requirement], env=job.environ, cwd=folder)
            except InstallError:
                self._say(f"no wheel of {requirement} for this host; it works without")
        final = Path("/", wanted.relative_to(self._root))
        _rename(wanted, final)
        for origin in wanted.glob("lib/python3*/site-packages/*.dist-info/direct_url.json"):
            origin.unlink()  # where the code lay on the machine that made the venv
        # Its user may not write there, and tracebacks are to show where the files will be.
        compiling = ("-m", "compileall", "-q", "-s", wanted, "-p", final, wanted / "lib")
        job.run([wanted / "bin/python", *compiling], env=job.environ, cwd=folder)


def _rename(here: Path, final: Path) -> None:
    """Have the scripts of a venv say where it will be."""
    if here == final:
        return
    for file in (here / "pyvenv.cfg", *(here / "bin").iterdir()):
        if file.is_file() and not file.is_symlink():
            data = file.read_bytes()
            file.write_bytes(data.replace(os.fsencode(here), os.fsencode(final)))


def _python_tag() -> str:
    try:
        done = subprocess.run(
            [PYTHON, "-I", "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={"PATH": os.defpath, "LANG": "C.UTF-8"},
            text=True,
            encoding="utf-8",
            timeout=ASK_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InstallError(f"{PYTHON}: {error}; run: apt-get install python3-venv") from None
    *version, tag = done.stdout.split()
    if tuple(map(int, version[:2])) < OLDEST:
        raise InstallError(f"{PYTHON} is {'.'.join(version)}; needed is 3.11 or newer")
    return tag
