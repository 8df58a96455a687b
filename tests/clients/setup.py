"""Install the real clients of package.json under the cache directory, exactly as locked.

    python tests/clients/setup.py          install what is missing, print the folder
    python tests/clients/setup.py --lock   also renew package-lock.json

The folder's name carries the lock's digest: a changed lock is a new folder, an installed one is
never changed. npm comes from PATH or from beside this Python; the clients run on the node 22 that
is one of the packages, since the inspector does not start on an older one.
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "package.json"
LOCK = HERE / "package-lock.json"
DONE = ".installed"
INSTALL_TIMEOUT = 1500.0  # seconds; a cold registry has been seen to need ten minutes
OPTIONS = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")


class CannotInstallError(Exception):
    """The clients cannot be had here; the message says why."""


def cache_dir() -> Path:
    root = os.environ.get("MCP_BRIDGE_CACHE")
    if root:
        return Path(root)
    if os.geteuid() == 0:
        # Started by root, a server runs as another uid, which may not look into root's home.
        return Path("/var/cache/mcp-bridge")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcp-bridge"


def home() -> Path:
    """Return where the clients of this lock are, or will be, installed."""
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    return cache_dir() / f"clients-{digest[:12]}"


def node() -> Path:
    """Return the node 22 that came with the clients."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    return home() / "node_modules" / f"node-linux-{machine}" / "bin" / "node"


def installed() -> bool:
    return (home() / DONE).exists()


def npm() -> str:
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)))
    found = shutil.which("npm", path=path)
    if found is None:
        raise CannotInstallError("npm is not installed")
    return found


def run_npm(folder: Path, *words: str) -> None:
    command = [npm(), *words, *OPTIONS]
    # npm finds node through PATH; a npm that lies beside its node must find that one.
    path = os.pathsep.join((str(Path(command[0]).parent), os.environ.get("PATH", os.defpath)))
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=INSTALL_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotInstallError(f"npm took longer than {INSTALL_TIMEOUT:.0f} s") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"npm exited with status {done.returncode}"]
        raise CannotInstallError("; ".join(lines[-3:]))


def install() -> Path:
    """Install the clients unless they are there; return their folder (raises as `install_locked`)."""
    # Not `ci`: that fails where a registry lacks an optional package for another system.
    return install_locked(home(), (PACKAGE, LOCK), "install", "--no-save", made=(node(),))


def install_locked(
    target: Path, files: Iterable[Path], *words: str, made: Iterable[Path] = ()
) -> Path:
    """Have npm install what these files lock, once for all who ask; return the folder.

    Raises:
        CannotInstallError: npm is missing, it failed, or not all of `made` is there then.
    """
    target.mkdir(parents=True, exist_ok=True)
    with (target / ".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / DONE).exists():
            for file in files:
                shutil.copy(file, target)
            run_npm(target, *words)
            for program in made:
                if not program.exists():
                    raise CannotInstallError(f"there is no {program.name} for {os.uname().machine}")
            (target / DONE).touch()
    return target


def renew_lock() -> None:
    """Resolve package.json anew; the lock names no registry, so that any mirror serves."""
    run_npm(HERE, "install", "--package-lock-only", "--omit-lockfile-registry-resolved")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lock", action="store_true", help="renew package-lock.json first")
    options = parser.parse_args()
    try:
        if options.lock:
            renew_lock()
        print(install())
    except CannotInstallError as error:
        print(f"the clients cannot be installed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
