"""The machine's disk, kernel and key: made once, then only read.

<cache>/machines/<suite>-<digest>/{root.img,vmlinuz,initrd,key}
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from lab import vm_recipe as recipe
from lab.base import BUILD_TIMEOUT
from lab.commands import PLAIN, locked, tool
from lab.recipe import OPTIONS

FILL_TIMEOUT = 120.0  # seconds for some hundred megabytes of files


@dataclass(frozen=True, slots=True)
class Image:
    """Where its files are."""

    folder: Path

    @property
    def disk(self) -> Path:
        return self.folder / "root.img"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd"

    @property
    def key(self) -> Path:
        """Root's of the machine, for ssh."""
        return self.folder / "key"


def image(cache: Path) -> Image:
    """Return the image, which is made if it is not there: in a minute or two.

    Raises:
        LabError: mmdebstrap or another program could not make it, or is not installed.
        LabTimeoutError: it took too long, here or in another process.
    """
    machines = cache / "machines"
    wanted = machines / recipe.image_name()
    if not wanted.exists():
        with locked(machines / f"{recipe.SUITE}.lock", within=2 * BUILD_TIMEOUT):
            if not wanted.exists():
                _build(wanted)
    return Image(wanted)


def disk_of(folder: Path, disk: Path, size: str) -> None:
    """Make a disk with the files of a directory.

    Raises:
        LabError: it has not enough room, or mke2fs is not installed.
    """
    words = ("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0")
    tool(*words, "-d", folder, disk, size, timeout=FILL_TIMEOUT).checked()


def _build(wanted: Path) -> None:
    # Only a complete image ever has its name; what a killed run left is of no use.
    partial = wanted.with_name(f"{wanted.name}.partial")
    _remove(partial)
    partial.mkdir(parents=True)
    root, made = partial / "root", Image(partial)
    early = partial / "early"
    try:
        for name, text in recipe.INITRAMFS.items():
            _write(early / name, text)
        words = ("mmdebstrap", *OPTIONS, f"--include={','.join(recipe.PACKAGES)}")
        hook = f"--essential-hook=copy-in {early}/etc/initramfs-tools /etc"
        built = tool(*words, hook, recipe.SUITE, root, timeout=BUILD_TIMEOUT, env=PLAIN)
        built.checked()
        for name, text in recipe.FILES.items():
            _write(root / name, text)
        _let_in(root, made.key)
        manage = ("systemctl", f"--root={root}")
        tool(*manage, "mask", *recipe.MASKED).checked()
        tool(*manage, "enable", *recipe.ENABLED).checked()
        # Debian's kernels are readable for root alone.
        for pattern, file in (("vmlinuz-*", made.kernel), ("initrd.img-*", made.initrd)):
            (found,) = (root / "boot").glob(pattern)
            shutil.move(found, file)
        disk_of(root, made.disk, recipe.SIZE)
        _remove(root)
        _remove(early)
        partial.rename(wanted)
    finally:
        _remove(partial)


def _let_in(root: Path, key: Path) -> None:
    """Let root in by the key; without PAM, sshd refuses a user whose password is locked."""
    tool("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).checked()
    tool("chroot", root, "passwd", "--delete", "root").checked()
    _write(root / "root/.ssh/authorized_keys", key.with_suffix(".pub").read_text(encoding="utf-8"))
    # The mount point for the program's disk.
    (root / "usr/lib/mcp-bridge").mkdir()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
