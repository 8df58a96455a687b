"""The lab's network: a bridge in a namespace of its own, one namespace per container.

Its addresses mean something in these namespaces only. From anywhere else they would leave by the
default route, and whatever answered would make a test look green. So nothing here hands a lab
address to code outside: `inside` runs a program within, `connect` returns a connected socket.
"""

import ipaddress
import socket
import subprocess
import sys
from pathlib import Path

from lab.commands import TOOL_TIMEOUT, Done, locked, tool
from lab.places import Lab, Place
from lab.problems import LabError, LabTimeoutError

NAMESPACES = Path("/run/netns")
SUBNET = ipaddress.ip_network("10.88.77.0/24")
BRIDGE_ADDRESS = SUBNET[1]
FIRST = 11  # of the addresses that containers get
_CONNECT = Path(__file__).with_name("connect.py")


def exists(name: str) -> bool:
    return (NAMESPACES / name).exists()


def join(place: Place) -> Path:
    """Make a container's namespace, joined to the bridge; return its path.

    Raises:
        LabError: the kernel refuses, or the subnet is full.
    """
    lab, own = place.lab, place.kernel_name
    with locked(lab.cache / "network.lock", within=TOOL_TIMEOUT):
        if not exists(lab.network):
            ip("netns", "add", lab.network)
            ip("-n", lab.network, "link", "set", "lo", "up")
            ip("-n", lab.network, "link", "add", "br0", "type", "bridge")
            ip("-n", lab.network, "addr", "add", f"{BRIDGE_ADDRESS}/24", "dev", "br0")
            ip("-n", lab.network, "link", "set", "br0", "up")
        address = _address(place)
        if not exists(own):
            ip("netns", "add", own)
            port = f"v-{address.rpartition('.')[2]}"
            link = ("link", "add", port, "type", "veth", "peer", "name", "host0", "netns", own)
            ip("-n", lab.network, *link)
            ip("-n", lab.network, "link", "set", port, "master", "br0", "up")
            ip("-n", own, "link", "set", "lo", "up")
            ip("-n", own, "addr", "add", f"{address}/24", "dev", "host0")
            ip("-n", own, "link", "set", "host0", "up")
    return NAMESPACES / own


def _address(place: Place) -> str:
    if not place.address.exists():
        taken = {path.read_text(encoding="utf-8") for path in place.lab.folder.glob("*/address")}
        free = (str(host) for host in list(SUBNET.hosts())[FIRST - 1 :] if str(host) not in taken)
        address = next(free, None)
        if address is None:
            raise LabError("the lab's subnet is full")
        place.address.write_text(address, encoding="utf-8")
    return place.address.read_text(encoding="utf-8")


def leave(place: Place) -> None:
    """Remove a container's namespace, and the lab's with the last one."""
    lab = place.lab
    with locked(lab.cache / "network.lock", within=TOOL_TIMEOUT):
        if exists(place.kernel_name):
            ip("netns", "del", place.kernel_name)
        if exists(lab.network) and not list(NAMESPACES.glob(f"{lab.network}-*")):
            ip("netns", "del", lab.network)


def ip(*words: str) -> None:
    tool("ip", *words).checked()


def _entering(lab: Lab) -> list[str]:
    if not exists(lab.network):
        raise LabError("the lab has no network: no container of it is up")
    # Not `ip netns exec`: that makes a mount namespace too, and whatever namespace is added in
    # there is broken for everybody else.
    return ["nsenter", f"--net={NAMESPACES / lab.network}", "--"]


def start(lab: Lab, *argv: str) -> subprocess.Popen[bytes]:
    """Start a program of the host within the lab's network; it says on stdout that it is ready.

    Raises:
        LabError: no container is up.
    """
    words = [*_entering(lab), *argv]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)


def inside(lab: Lab, *argv: str, timeout: float = TOOL_TIMEOUT) -> Done:
    """Run a program of the host within the lab's network.

    Raises:
        LabError: no container is up, or the program is not there.
        LabTimeoutError: it did not end in time.
    """
    return tool(*_entering(lab), *argv, timeout=timeout)


def attached(lab: Lab, argv: list[str], *, timeout: float) -> int:
    """Run a program within the lab's network on the caller's own streams; return its status.

    Raises:
        LabError: no container is up.
        LabTimeoutError: it did not end in time.
    """
    try:
        return subprocess.run([*_entering(lab), *argv], timeout=timeout, check=False).returncode
    except subprocess.TimeoutExpired as error:
        raise LabTimeoutError(f"not done within {timeout:g} s") from error


def guard(lab: Lab) -> None:
    """Allow only a process within the lab's network to go on.

    Raises:
        LabError: this one is outside.
    """
    here, there = Path("/proc/self/ns/net"), NAMESPACES / lab.network
    if not exists(lab.network) or here.stat().st_ino != there.stat().st_ino:
        raise LabError("lab addresses may be used only from within the lab's network")


def connect(place: Place, port: int, *, timeout: float = TOOL_TIMEOUT) -> socket.socket:
    """Return a socket that is connected to a port of a container, made within the lab's network.

    Raises:
        LabError: the container has no address, or nothing listens there.
    """
    if not place.address.exists():
        raise LabError(f"{place.name} is not on the lab's network")
    address = place.address.read_text(encoding="utf-8")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        program = [sys.executable, "-I", str(_CONNECT), str(theirs.fileno()), address, str(port)]
        entering = _entering(place.lab)
        tool(*entering, *program, timeout=timeout, pass_fds=[theirs.fileno()]).checked()
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    return socket.socket(fileno=descriptors[0])
