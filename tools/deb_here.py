"""Make the Debian package of the release that this runs on, with debhelper.

    python3 tools/deb_here.py [--out dist]

What is built is what git tracks. The same commit gives the same bytes as long as the package
index gives the same files. `tools/deb.py` does it in a container of each suite.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "autobot-mcp-bridge"
TIMEOUT = 1200.0  # seconds for one package: pip may download for minutes
EPOCH = "SOURCE_DATE_EPOCH"
_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_MAINTAINER = re.compile(r"^Maintainer: (.+)$", re.MULTILINE)


class BuildError(Exception):
    """A package could not be made; the message says why."""


def main() -> int:
    parser = argparse.ArgumentParser(description="make the Debian package of this release")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the package goes")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    try:
        print(build(asked.out))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def build(out: Path) -> Path:
    """Build the package of this Debian from a copy of the tree; where it is.

    Raises:
        BuildError: this is no Debian, or dpkg-buildpackage failed.
    """
    release, suite = _debian()
    epoch = os.environ.get(EPOCH) or last_commit()
    scratch = out.resolve() / ".build"  # not a random name: scripts' hashes would tell it
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        copy = scratch / "tree"
        copy_tree(copy)
        _write_changelog(copy, f"+deb{release}", suite, int(epoch))
        # Not checked: build-essential, a compiler, counts as needed, and nothing is compiled.
        words = ("dpkg-buildpackage", "--build=binary", "--no-sign", "--no-check-builddeps")
        _run(words, cwd=copy, env={**os.environ, EPOCH: epoch})
        (made,) = scratch.glob(f"{PACKAGE}_*.deb")
        return Path(shutil.copy(made, out))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def copy_tree(target: Path) -> None:
    """Copy what git tracks, or would; a copy without git as a whole."""
    if not (ROOT / ".git").exists():
        shutil.copytree(ROOT, target, symlinks=True, ignore=shutil.ignore_patterns("dist"))
        return
    words = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    for name in filter(None, _ask(*words).split("\0")):
        source, path = ROOT / name, target / name
        if source.is_symlink() or source.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, path, follow_symlinks=False)


def _debian() -> tuple[str, str]:
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    release, suite = (found.get(name, "").strip('"') for name in ("VERSION_ID", "VERSION_CODENAME"))
    if found.get("ID") != "debian" or not release:
        raise BuildError("this host is no Debian release; `make deb` builds in containers")
    return release, suite


def last_commit() -> str:
    return _ask("git", "log", "-1", "--format=%ct").strip()


def _write_changelog(tree: Path, suffix: str, suite: str, epoch: int) -> None:
    """debian/changelog(5) of one entry, from the program's own version: what changed is elsewhere."""
    module = tree / "supervisor" / PACKAGE.replace("-", "_") / "__init__.py"
    version = _VERSION.search(module.read_text(encoding="utf-8"))
    control = (tree / "debian" / "control").read_text(encoding="utf-8")
    maintainer = _MAINTAINER.search(control)
    if version is None or maintainer is None:
        raise BuildError(f"{module} has no __version__, or debian/control no Maintainer")
    date = format_datetime(datetime.fromtimestamp(epoch, UTC))
    text = (
        f"{PACKAGE} ({version[1]}{suffix}) {suite}; urgency=medium\n\n"
        f"  * What changed is told in CHANGELOG.md.\n\n -- {maintainer[1]}  {date}\n"
    )
    (tree / "debian" / "changelog").write_text(text, encoding="utf-8")


def _ask(*words: str) -> str:
    try:
        done = subprocess.run(
            words, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(f"{shlex.join(words)}: {error}; or set {EPOCH}") from None
    return done.stdout.decode()


def _run(words: tuple[str, ...], cwd: Path, env: dict[str, str]) -> None:
    """Run a step of the build; its words go to stderr, so that stdout names packages only."""
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{shlex.join(words)}: {error}; is dpkg-dev installed?") from None
    if done.returncode:
        raise BuildError(f"{shlex.join(words)} ended with status {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
