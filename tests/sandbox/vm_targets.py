"""The same targets in a virtual machine: a network namespace of its own stands for the outside."""

from collections.abc import Iterator
from contextlib import contextmanager

from lab import network
from lab.vm import Vm
from sandbox.targets import (
    ABSTRACT,
    ANSWERS,
    BRIDGE_SIX,
    INSIDE,
    OWN_SIX,
    PORT,
    Target,
    beyond,
    scoped,
    targets,
)
from support.waiting import until

OUTSIDE = "outside"
OWN = str(network.SUBNET[11])
# The outside's, and the machine's own.
LISTENERS = ("sandbox-answers-outside", "sandbox-answers-here")
WITHIN = 30.0


@contextmanager
def answering_in(vm: Vm) -> Iterator[dict[str, Target]]:
    """All of them answer."""
    found = targets(OWN)
    far = beyond(found)
    near = [one.address for one in found.values() if one.here]
    vm.copy(ANSWERS, INSIDE)
    vm.check("sh", "-e", stdin="\n".join(_ways(far)))
    try:
        _start(vm, LISTENERS[0], ("ip", "netns", "exec", OUTSIDE), scoped(far))
        _start(vm, LISTENERS[1], (), [f"@{ABSTRACT}", *near])
        yield found
    finally:
        vm.run("systemctl", "stop", *LISTENERS)
        vm.check("ip", "netns", "delete", OUTSIDE)


def _ways(far: list[str]) -> Iterator[str]:
    """The commands that lay a link to the outside, named as the lab's, and give it addresses."""
    bridge = str(network.BRIDGE_ADDRESS)
    yield f"ip netns add {OUTSIDE}"
    yield f"ip link add host0 type veth peer name br0 netns {OUTSIDE}"
    yield f"ip address add {OWN}/24 dev host0"
    yield f"ip address add {OWN_SIX}/64 dev host0 nodad"
    there = f"ip -n {OUTSIDE} address replace"
    yield f"{there} {bridge}/24 dev br0"
    yield f"{there} {BRIDGE_SIX}/64 dev br0 nodad"
    for address in far:
        if address != bridge:
            six = ":" in address
            yield f"{there} {address}/{128 if six else 32} dev br0{' nodad' if six else ''}"
    yield f"ip -n {OUTSIDE} link set lo up"
    yield f"ip -n {OUTSIDE} link set br0 up"
    yield "ip link set host0 up"
    yield f"ip route replace default via {bridge}"
    yield f"ip -6 route replace default via {BRIDGE_SIX}"


def _start(vm: Vm, unit: str, within: tuple[str, ...], addresses: list[str]) -> None:
    said = f"/run/{unit}"
    answers = (*within, "/usr/bin/python3", "-I", INSIDE, str(PORT), *addresses)
    started = ("systemd-run", "--quiet", f"--unit={unit}", f"--property=StandardOutput=file:{said}")
    vm.check(*started, *answers)
    ready = until(lambda: vm.run("cat", said).out == "ready\n", within=WITHIN)
    assert ready, vm.run("journalctl", "--no-pager", "-u", unit).out
