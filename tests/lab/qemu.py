"""The program that a virtual machine is, and what else it takes to have one."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from lab.commands import PLAIN
from lab.vm_image import Image

PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "setpriv": "util-linux",
    "ssh": "openssh-client",
}
MEMORY_MIB = 1024
# With two the kernel, which rewrites its own code as it boots, has been seen to die of that: an
# emulated processor may still run what the other has replaced ("Oops: int3", qemu 7.2, measured).
PROCESSORS = 1
_KERNEL = (
    "root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 mitigations=off random.trust_cpu=on "
    "systemd.show_status=0 oops=panic panic=-1"
)


def unavailable() -> str | None:
    """Return why there can be no machine here; None if nothing is known against it."""
    if os.geteuid() != 0:
        return "not root"
    absent = [name for name in PROGRAMS if shutil.which(name, path=PLAIN["PATH"]) is None]
    if absent:
        packages = " ".join(PROGRAMS[name] for name in absent)
        return f"not installed: {', '.join(absent)}; run: apt-get install {packages}"
    return None


def words(image: Image, disks: Sequence[Path], console: Path, port: int) -> list[str]:
    """Return the command that boots an image.

    Args:
        image: what it boots, /dev/vda.
        disks: further disks, /dev/vdb and so on; what is written to any of them is lost.
        console: the file that what it says goes to.
        port: of this host's loopback, behind which is its sshd.
    """
    # kvm for who knows that it works: a /dev/kvm that is there need not (measured).
    accelerator = os.environ.get("MCP_BRIDGE_VM_ACCELERATOR", "tcg")
    made = ["qemu-system-x86_64", "-M", "q35", "-accel", accelerator, "-cpu", "max"]
    made += ["-smp", str(PROCESSORS), "-m", str(MEMORY_MIB), "-nodefaults", "-no-user-config"]
    # A kernel that panics restarts at once, and so ends it.
    made += ["-no-reboot", "-display", "none", "-monitor", "none"]
    made += ["-serial", f"file:{console}"]
    made += ["-kernel", str(image.kernel), "-initrd", str(image.initrd)]
    made += ["-append", _KERNEL, "-device", "virtio-rng-pci"]
    for disk in (image.disk, *disks):
        made += ["-drive", f"file={disk},format=raw,if=virtio,snapshot=on,cache=unsafe"]
    # No way leads out of it, and one in: ssh.
    network = f"user,id=n0,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"
    return [*made, "-netdev", network, "-device", "virtio-net-pci,netdev=n0,romfile="]
