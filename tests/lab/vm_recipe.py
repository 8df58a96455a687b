"""What the machine's image holds; whatever changes here gives the image a new name.

It boots without udev (devtmpfs makes the nodes, the initramfs loads the modules), without a network
manager and without sessions: emulated, each unit at boot costs seconds.
"""

import hashlib
import json

from lab.recipe import OPTIONS

SUITE = "trixie"
VERSION = 257  # of its systemd
SIZE = "3G"  # sparse
PACKAGES = (
    "systemd",
    "systemd-sysv",
    "libnss-systemd",
    "dbus",
    "polkitd",
    "python3",
    "procps",
    "iproute2",
    "kmod",
    "openssh-server",
    "initramfs-tools",
    "linux-image-cloud-amd64",
)
_MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "ext4")
# Before any package's script makes an initramfs with every module that there is.
INITRAMFS = {
    "etc/initramfs-tools/conf.d/lab": "MODULES=list\n",
    "etc/initramfs-tools/modules": "".join(f"{name}\n" for name in _MODULES),
}
# The addresses are those of qemu's user network.
_NETWORK = """[Unit]
DefaultDependencies=no
Before=network.target ssh.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=ip link set lo up
ExecStart=ip address add 10.0.2.15/24 dev eth0
ExecStart=ip link set eth0 up
[Install]
WantedBy=sysinit.target
"""
READY = "the machine is ready"
_READY = f"""[Unit]
After=ssh.service dbus.service lab-network.service
[Service]
Type=oneshot
RemainAfterExit=yes
StandardOutput=tty
TTYPath=/dev/ttyS0
ExecStart=echo '{READY}'
[Install]
WantedBy=multi-user.target
"""
# No session with a manager of its own for each login, and no check of the settings at each boot.
_SSHD = "UsePAM no\nUseDNS no\nPermitRootLogin prohibit-password\nMaxSessions 64\n"
FILES = {
    "etc/hostname": "vm\n",
    "etc/hosts": "127.0.0.1 localhost vm\n::1 localhost\n",
    "etc/fstab": "",
    "etc/machine-id": "",
    "etc/ssh/sshd_config.d/lab.conf": _SSHD,
    "etc/systemd/system/ssh.service.d/lab.conf": (
        "[Unit]\nAfter=lab-network.service\n[Service]\nExecStartPre=\n"
    ),
    "etc/systemd/system/lab-network.service": _NETWORK,
    "etc/systemd/system/lab-ready.service": _READY,
}
ENABLED = ("lab-network.service", "lab-ready.service", "ssh.service")
MASKED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer"),
    *("e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer"),
    *("systemd-udevd.service", "systemd-udevd-kernel.socket", "systemd-udevd-control.socket"),
    *("systemd-udev-trigger.service", "systemd-udev-load-credentials.service"),
    *("modprobe@.service", "kmod-static-nodes.service", "systemd-modules-load.service"),
    *("systemd-network-generator.service", "systemd-networkd-persistent-storage.service"),
    *("sys-kernel-debug.mount", "sys-kernel-tracing.mount", "dev-hugepages.mount"),
    *("dev-mqueue.mount", "systemd-binfmt.service", "proc-sys-fs-binfmt_misc.automount"),
    *("systemd-remount-fs.service", "systemd-journal-catalog-update.service"),
    *("systemd-update-done.service", "ldconfig.service", "systemd-firstboot.service"),
    *("systemd-pcrphase.service", "systemd-pstore.service", "systemd-hwdb-update.service"),
    *("systemd-random-seed.service", "getty@.service", "serial-getty@.service"),
    *("console-getty.service", "logrotate.timer"),
)


def image_name() -> str:
    parts = [SUITE, SIZE, PACKAGES, OPTIONS, INITRAMFS, FILES, ENABLED, MASKED]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return f"{SUITE}-{digest[:12]}"
