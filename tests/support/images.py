"""Images for servers with a root of their own, and what a container needs to mount them."""

import hashlib
import subprocess
import sys
from pathlib import Path

from lab.commands import PLAIN, locked, tool
from lab.containers import Container
from lab.places import Lab
from rules.tree import ROOT
from support.waiting import PATIENCE

TOOL = ROOT / "tools" / "sandbox_image.py"
PACKAGES = ROOT / "tools" / "sandbox-image.packages"
# 100 MB from a mirror and their compression: 200 s on a busy machine.
BUILD_WITHIN = 900.0
# Not bound from the host: systemd has the kernel remove a loop device that it has done with, and
# with it the host's node. Numbers: Documentation/admin-guide/devices.txt of Linux.
_LOOPS = """
test -e /dev/loop-control || mknod -m 600 /dev/loop-control c 10 237
for n in $(seq 0 31); do test -e /dev/loop$n || mknod -m 600 /dev/loop$n b 7 $n; done
"""


def allow_images(container: Container) -> None:
    """Give a container the device nodes with which its systemd mounts an image."""
    container.check("sh", "-ec", _LOOPS)


def build(output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tool as `make sandbox-image` does, with no more of an environment."""
    return subprocess.run(
        [sys.executable, TOOL, "--output", output, *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=PLAIN,
        timeout=BUILD_WITHIN * PATIENCE,
        check=False,
    )


def sandbox_image(lab: Lab) -> Path:
    """The image of `make sandbox-image`, made once and kept beside the lab's bases."""
    digest = hashlib.sha256(TOOL.read_bytes() + PACKAGES.read_bytes()).hexdigest()[:12]
    wanted = lab.cache / "images" / f"sandbox-{digest}.squashfs"
    if not wanted.exists():
        with locked(lab.cache / "images" / "sandbox.lock", within=2 * BUILD_WITHIN):
            if not wanted.exists():
                done = build(wanted)
                assert done.returncode == 0, done.stderr
    return wanted


def squashed(folder: Path, output: Path) -> Path:
    """An image of a directory."""
    tool("mksquashfs", folder, output, "-quiet", "-no-progress", "-all-root").checked()
    output.chmod(0o644)
    return output
