"""What a server might reach, in the lab's own network namespaces, from which no way leads out.

The bridge has addresses of every kind, and the container its default route to it.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import network
from lab.containers import Container
from sandbox.faces import LISTED

ANSWERS = Path(__file__).with_name("answers.py")
INSIDE = "/opt/answers.py"
PORT = 53
OWN_SIX, BRIDGE_SIX = "fd88:77::11", "fd88:77::1"
LISTENER = "sandbox-answers.service"
ABSTRACT = "attempt"  # the name of a socket that is in no directory


@dataclass(frozen=True, slots=True)
class Target:
    """An address.

    Attributes:
        modes: the network modes that let it through.
        by_tcp: it is connected to by TCP, too.
        here: it is the container's own, not the bridge's.
    """

    address: str
    modes: tuple[str, ...] = ()
    by_tcp: bool = False
    here: bool = False


def targets(own: str) -> dict[str, Target]:
    """All of them; `own` is the address of the machine that attempts it."""
    online = ("list", "internet")
    return {
        "the host's resolver": Target(str(network.BRIDGE_ADDRESS), online, by_tcp=True),
        "a listed address": Target(LISTED[0], online, by_tcp=True),
        "a listed address of IPv6": Target("2620:4f:8000::7", online),
        "a public address": Target("192.31.196.7", ("internet",), by_tcp=True),
        "a public address of IPv6": Target("2620:4f:8000:1::7", ("internet",), by_tcp=True),
        "the metadata service": Target("169.254.169.254", by_tcp=True),
        "the metadata service of IPv6": Target("fd00:ec2::254"),
        "the metadata service of Azure": Target("168.63.129.16"),
        "the metadata service of Alibaba": Target("100.100.100.200"),
        "a link-local address": Target("169.254.7.7"),
        "a link-local address of IPv6": Target("fe80::7%host0"),
        "10.0.0.0/8": Target("10.7.7.7"),
        "172.16.0.0/12": Target("172.16.7.7"),
        "192.168.0.0/16": Target("192.168.7.7", by_tcp=True),
        "192.168.0.0/16 by a socket of IPv6": Target("::ffff:192.168.7.7"),
        "100.64.0.0/10": Target("100.64.7.7"),
        "fc00::/7": Target("fd00:7::7"),
        "documentation's addresses": Target("203.0.113.7"),
        "192.168.0.0/16 behind NAT64": Target("64:ff9b::c0a8:707"),
        "192.168.0.0/16 behind 6to4": Target("2002:c0a8:707::7"),
        "Teredo's addresses": Target("2001:0:1::7"),
        "the host's loopback": Target("127.0.0.1", by_tcp=True, here=True),
        "the host's loopback of IPv6": Target("::1", here=True),
        "the host itself": Target(own, here=True),
    }


def beyond(found: Mapping[str, Target]) -> list[str]:
    """The addresses that are not the machine's own."""
    far = [one.address.partition("%")[0] for one in found.values() if not one.here]
    return sorted({address for address in far if not address.startswith("::ffff:")})


def scoped(addresses: Iterable[str]) -> list[str]:
    """As answers.py takes them: a link-local one says its interface."""
    return [f"{address}%br0" if address.startswith("fe80:") else address for address in addresses]


@contextmanager
def answering(container: Container) -> Iterator[dict[str, Target]]:
    """All of them answer."""
    lab, namespace = container.place.lab, container.place.kernel_name
    found = targets(container.place.address.read_text(encoding="utf-8"))
    far = beyond(found)
    for address in (*far, BRIDGE_SIX):
        if address != str(network.BRIDGE_ADDRESS):
            _address(lab.network, "br0", address, "64" if address == BRIDGE_SIX else "")
    _address(namespace, "host0", OWN_SIX, "64")
    for version, way in (("-4", str(network.BRIDGE_ADDRESS)), ("-6", BRIDGE_SIX)):
        network.ip(version, "-n", namespace, "route", "replace", "default", "via", way)
    answers = network.start(lab, sys.executable, "-I", str(ANSWERS), str(PORT), *scoped(far))
    near = [one.address for one in found.values() if one.here]
    container.copy(ANSWERS, INSIDE)
    words = ("systemd-run", "--quiet", f"--unit={LISTENER}", "/usr/bin/python3", "-I", INSIDE)
    try:
        assert answers.stdout is not None
        assert answers.stdout.readline() == b"ready\n"
        container.check(*words, str(PORT), f"@{ABSTRACT}", *near)
        yield found
    finally:
        answers.kill()
        answers.wait()
        assert answers.stdout is not None
        answers.stdout.close()
        container.run("systemctl", "stop", LISTENER)


def _address(namespace: str, device: str, address: str, prefix: str) -> None:
    """Give a device an address that is there at once."""
    length = prefix or ("128" if ":" in address else "32")
    words = ("addr", "replace", f"{address}/{length}", "dev", device)
    network.ip("-n", namespace, *words, *(("nodad",) if ":" in address else ()))
