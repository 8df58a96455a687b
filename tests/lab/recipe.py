"""What a base root file system holds; whatever changes here gives the base a new name."""

import hashlib
import json

# Suite to the systemd version that it brings.
SUITES = {"bookworm": 252, "trixie": 257}

PACKAGES = (
    "systemd",
    "systemd-sysv",
    "libpam-systemd",
    "libnss-systemd",
    "dbus",
    "polkitd",
    "python3",
    "python3-venv",
    "nodejs",
    "procps",
    "iproute2",
    "ca-certificates",
    # Ansible comes in by ssh, becomes root by sudo, and installs packages with python3-apt.
    "openssh-server",
    "sudo",
    "python3-apt",
)

# Nobody reads manuals in there, and a power cut only costs the building of it.
OPTIONS = (
    "--quiet",
    "--variant=minbase",
    '--aptopt=Acquire::Languages "none"',
    "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
)

# Start only on demand: they would download, or listen on the host's port 22 in a container on
# the host's network. sshd also wants host keys, which a shared base must not have.
DISABLED = ("ssh.service", "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer")
REMOVED = ("etc/ssh/ssh_host_*",)
FILES = {
    "etc/machine-id": "",  # each container gets its own
    "etc/ssh/sshd_config.d/lab.conf": "PermitRootLogin prohibit-password\nUseDNS no\n",
}


def base_name(suite: str) -> str:
    parts = [suite, PACKAGES, OPTIONS, DISABLED, REMOVED, FILES]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return f"{suite}-{digest[:12]}"
