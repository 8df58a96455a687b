"""Hosts for Ansible: containers of the checkout's lab with sshd, an administrator and a mirror.

    python tests/rollout/hosts.py up NAME SUITE       as a fresh Debian, with what Ansible needs
    python tests/rollout/hosts.py down NAME…
    python tests/rollout/hosts.py env                 variables for molecule/shared/inventory/connection.yml

They have no internet: pip finds what dist/requirements.txt names in a directory, as it would on a
company's mirror. The administrator is no root; he has sudo.
"""

import shlex
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from lab import host, labs
from lab.containers import Container
from lab.places import Lab
from lab.problems import LabError
from lab.spec import Bind
from rollout.wheels import wheels
from rules.tree import ROOT

ADMINISTRATOR = "admin"
MIRROR = "/srv/wheels"
LOOPBACK = "127.0.0.1"
PIP = f"[global]\nno-index = true\nfind-links = {MIRROR}\n"
KEY_TIMEOUT = 30.0  # seconds to make a pair of keys
PREPARE = f"""
useradd --create-home --shell /bin/sh {ADMINISTRATOR}
install -d -m 700 -o {ADMINISTRATOR} /home/{ADMINISTRATOR}/.ssh
cat > /home/{ADMINISTRATOR}/.ssh/authorized_keys
echo '{ADMINISTRATOR} ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/{ADMINISTRATOR}
ssh-keygen -A > /dev/null
systemctl start ssh
"""


def key(lab: Lab) -> Path:
    """The lab's own key, made when it is not there."""
    path = lab.folder / "administrator"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(path))
        subprocess.run(words, stdin=subprocess.DEVNULL, check=True, timeout=KEY_TIMEOUT)
    return path


def up(lab: Lab, name: str, suite: str) -> Container:
    """Boot one and let the administrator in.

    Raises:
        LabError: it cannot be made.
    """
    container = labs.up(lab, name, suite, binds=[Bind(str(wheels()), MIRROR)])
    _prepare(lab, container)
    container.write("/etc/pip.conf", PIP)
    return container


def up_online(lab: Lab, name: str, suite: str, port: int) -> Container:
    """Boot one on this machine's network, with its package settings; sshd is on loopback's port.

    Raises:
        LabError: it cannot be made.
    """
    container = labs.up(lab, name, suite, host_network=True)
    container.write("/etc/ssh/sshd_config.d/port.conf", f"Port {port}\nListenAddress {LOOPBACK}\n")
    _prepare(lab, container)
    return container


def _prepare(lab: Lab, container: Container) -> None:
    public = key(lab).with_suffix(".pub").read_text(encoding="utf-8")
    container.check("sh", "-euc", PREPARE, stdin=public)


def variables(lab: Lab) -> dict[str, str]:
    """What molecule/shared/inventory/connection.yml finds the hosts by."""
    return {
        "MCP_BRIDGE_LAB_FOLDER": str(lab.folder),
        "MCP_BRIDGE_LAB_NETWORK": lab.network,
        "MCP_BRIDGE_LAB_PYTHON": sys.executable,
        "MCP_BRIDGE_LAB_SSH": str(ROOT / "molecule" / "shared" / "ssh"),
    }


def main(verb: str, *words: str) -> int:
    lab = Lab.of_checkout()
    why = host.unavailable(lab.cache)
    if why is not None:
        print(f"there can be no lab here: {why}", file=sys.stderr)
        return 1
    try:
        match verb:
            case "up":
                up(lab, *words)
            case "down":
                for name in words:
                    Container(lab.place(name)).down()
            case "env":
                for name, text in variables(lab).items():
                    print(f"export {name}={shlex.quote(text)}")
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
