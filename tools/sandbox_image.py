"""Make an image for servers with a root of their own: Debian, python3 and command-line tools.

    python tools/sandbox_image.py [--suite SUITE] [--packages FILE] [--add NAME]… [--mirror URL] [--output FILE]

The same packages give the same bytes: no time of the build, no machine's identity, no log and no
cache stays in it. SOURCE_DATE_EPOCH (reproducible-builds.org) sets the latest time of a file.
Needs root, mmdebstrap and squashfs-tools; a mirror of Debian is read.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "tools" / "sandbox-image.packages"
SUITE = "trixie"
EPOCH = "946684800"  # 2000-01-01: any time does, as long as it is the same one
PYTHON = "usr/bin/python3"
TIMEOUT = 1800.0  # seconds for one program: a slow mirror has to give about 100 MB
_NEEDED = {"mmdebstrap": "mmdebstrap", "mksquashfs": "squashfs-tools", "dpkg-query": "dpkg"}
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
# fmt: off
_OPTIONS = (
    "--quiet", "--variant=essential",
    '--aptopt=Acquire::Languages "none"', "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",
)
# mksquashfs(1); the owners are root's, since no server runs as any other user of the image.
_SQUASH = ("-noappend", "-comp", "zstd", "-all-root", "-no-xattrs", "-no-progress", "-quiet")
# What differs from build to build, or belongs to one machine; the mirror may be a private one.
_REMOVED = (
    "etc/machine-id", "etc/hostname", "etc/resolv.conf", "etc/apt", "etc/*-", "etc/shadow",
    "etc/gshadow", "etc/.pwd.lock", "var/lib/apt", "var/lib/dpkg/*-old", "var/lib/dpkg/lock*",
    "var/lib/systemd", "var/lib/dbus",
    # Written by whichever import came first; those of the library are made at installation.
    "usr/share/**/__pycache__",
)
_EMPTIED = ("dev", "proc", "run", "sys", "tmp", "var/cache", "var/log", "var/tmp")
# What servers are given is bound on these.
_MOUNT_POINTS = ("home", "media", "mnt", "opt", "root", "srv", "var/lib", *_EMPTIED)
# fmt: on


class ImageError(Exception):
    """There is no image; the message says why and what helps."""


def main(arguments: list[str]) -> int:
    asked = _parser().parse_args(arguments)
    epoch = os.environ.get("SOURCE_DATE_EPOCH", EPOCH)
    output: Path = asked.output or ROOT / "dist" / f"sandbox-{asked.suite}.squashfs"
    try:
        wanted = [*read_packages(asked.packages), *asked.add]
        _require()
        installed = build(asked.suite, wanted, output.absolute(), epoch, asked.mirror)
    except (ImageError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    with output.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    listing = output.with_suffix(".packages")
    listing.write_text("".join(f"{line}\n" for line in installed), encoding="utf-8")
    print(*installed, sep="\n")
    print(f"{output}: {output.stat().st_size / 1e6:.1f} MB, sha256 {digest}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", default=SUITE, help=f"of Debian; default: {SUITE}")
    parser.add_argument("--packages", type=Path, default=PACKAGES, help="a package a line")
    parser.add_argument("--add", action="append", default=[], metavar="NAME", help="one more")
    parser.add_argument("--mirror", help="of Debian; default: mmdebstrap's own")
    parser.add_argument("--output", type=Path, help="default: dist/sandbox-SUITE.squashfs")
    return parser


def read_packages(file: Path) -> list[str]:
    """The names in a list, in which `#` begins a comment.

    Raises:
        ImageError: a line is no name of a package.
    """
    names = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if name := line.partition("#")[0].strip():
            if not _NAME.fullmatch(name):
                raise ImageError(f"{file}:{number}: {name!r} is no name of a Debian package")
            names.append(name)
    return names


def build(
    suite: str, packages: list[str], output: Path, epoch: str, mirror: str | None
) -> list[str]:
    """Write the image, there whole or not at all; name and version of each package in it.

    Raises:
        ImageError: a program failed, or python3 is not in it.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sandbox-image-", dir=output.parent) as name:
        work = Path(name)
        work.chmod(0o755)  # apt gives up its rights and reads below
        root, draft = work / "root", work / "image"
        include = f"--include={','.join(packages)}"
        sources = [suite, root, *([mirror] if mirror else [])]
        _run(["mmdebstrap", *_OPTIONS, include, *sources], epoch)
        if not (root / PYTHON).exists():
            raise ImageError(f"/{PYTHON} is not in it, which starts every server; name python3")
        installed = sorted(_run(_listing(root), epoch).splitlines())
        _tidy(root)
        _run(["mksquashfs", root, draft, *_SQUASH], epoch)
        draft.chmod(0o644)
        draft.replace(output)
    return installed


def _require() -> None:
    if os.geteuid() != 0:
        raise ImageError("the files of an image belong to root: run this as root")
    lacking = [package for program, package in _NEEDED.items() if not shutil.which(program)]
    if lacking:
        raise ImageError(f"run: apt-get install {' '.join(lacking)}")


def _listing(root: Path) -> list[str | Path]:
    form = "--showformat=${Package} ${Version}\n"
    return ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "--show", form]


def _tidy(root: Path) -> None:
    for pattern in _REMOVED:
        for path in [*root.glob(pattern)]:
            _remove(path)
    for place in _EMPTIED:
        for path in (root / place).iterdir():
            _remove(path)
    for place in _MOUNT_POINTS:
        (root / place).mkdir(parents=True, exist_ok=True)
    # A file to bind the host's on.
    (root / "etc/resolv.conf").write_bytes(b"")
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o6000:
            path.chmod(path.stat().st_mode & 0o777)  # no server may become another user


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _run(words: list[str | Path], epoch: str) -> str:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    command = [str(word) for word in words]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
            umask=0o022,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ImageError(f"{command[0]} did not end within {TIMEOUT:g} s") from None
    if done.returncode:
        last = "\n".join(done.stderr.splitlines()[-20:])
        raise ImageError(f"{command[0]}: status {done.returncode}\n{last}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
