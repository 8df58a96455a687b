"""Every attempt of attempts.py in a plain unit and in faces of the sandbox, in a machine."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.units.packages.live import LIVE_PROFILES
from autobot_mcp_bridge.units.sandbox.confinement import Facts
from autobot_mcp_bridge.units.sandbox.profiles import PROFILES
from autobot_mcp_bridge.units.sandbox.resolvers import Resolvers
from lab import network
from lab.containers import Container
from lab.machine import Machine
from sandbox.faces import FACES, Face
from sandbox.targets import ABSTRACT, PORT, Target, answering
from support import installed as units
from support.containers import properties
from support.installed import Instance, instance, instances, spec_of

ATTEMPTS, THERE = "/opt/attempts.py", "/opt/attempts.json"
WORDS = ("/usr/bin/python3", "-I", "-S", ATTEMPTS, THERE)
STATE = "/var/lib/mcp-bridge/default/-/other"
# Low enough that each is met by an attempt, and enough for Python.
LIMITS = {"memory": "128M", "cpu": "100%", "tasks": 64, "open_files": 256}
# Less than a busy machine would leave it; only for the attempt on the processor, which it slows down.
SHARE = "5%"
PROCESSOR = "processor"
# Where systemd sees that a child has been ended for its memory, it would end the attempts, too.
GOES_ON = "[Service]\nOOMPolicy=continue\n"
# The attempts have a second each for an answer that does not come.
WITHIN = 60.0
AT_ONCE = 5

Found = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it: promise to attempt to result.

    Attributes:
        plain: in a unit of root's without a sandbox.
        faces: in each face of the sandbox.
        targets: what the attempts on the network ask for.
    """

    plain: Found
    faces: Mapping[Face, Found]
    targets: Mapping[str, Target]

    def given(self, name: str, face: Face) -> bool:
        """Whether this face of the sandbox is meant to allow the attempt."""
        profile = PROFILES[face.profile]
        verb, _, what = name.partition(" ")
        if verb in ("ask", "connect") and (target := self.targets.get(what.removeprefix("to "))):
            return face.mode in target.modes
        match name:
            case "make code at run time":
                return profile.compiles
            case "make an AF_INET socket" | "make an AF_INET6 socket":
                return face.mode != "none"
            case "make an AF_UNIX socket":
                return profile.local
            case "connect to an abstract socket":  # which belongs to the network's namespace
                return profile.local and face.is_online
            case "read /proc/cpuinfo":
                return profile.machine
            case "make an AF_NETLINK socket" | "ask for the interfaces":
                return profile.interfaces and face.mode != "none"
            case "talk to itself over loopback":
                return face.mode in ("loopback", "names")
            case "unshare the user namespace":
                return "user" in profile.namespaces
            case "execute from its cache":
                return face.profile in LIVE_PROFILES
            case "execute a memory file":
                return "memfd_create" not in profile.denied
            case _:
                return False


def gather(container: Container) -> Report:
    """Try everything; it takes half a minute."""
    with answering(container) as found:
        return trying(container, found)


def trying(
    machine: Machine,
    found: Mapping[str, Target],
    faces: Sequence[Face] = FACES,
    kind: type[Instance] = Instance,
    share: str = SHARE,
    **more: str,
) -> Report:
    """Try everything where these targets answer.

    Args:
        machine: where.
        found: what answers there.
        faces: of the sandbox.
        kind: how an instance is started there.
        share: of a processor, for the attempt on that.
        more: what else there is to attack.
    """
    units.install(machine)
    machine.copy(Path(__file__).with_name("attempts.py"), ATTEMPTS)
    for name in LIVE_PROFILES:
        machine.write(f"/opt/live/{name}", '#!/bin/sh\nexec "$@"\n', mode=0o755)
    machine.write("/etc/credstore/attempt", "there", mode=0o600)
    other = spec_of("other", credentials={"TOKEN": "attempt"})
    with instance(machine, other, kind=kind) as one, one.held():
        machine.write(THERE, json.dumps({**_there(machine, one, found), **more}))
        run = ("systemd-run", "--quiet", "--pipe", "--wait", "--", *WORDS)
        plain = json.loads(machine.check(*run, timeout=WITHIN))
        others = [promise for promise in plain if promise != PROCESSOR]

        def each(words: Sequence[str], limits: Mapping[str, Any]) -> dict[Face, Found]:
            specs = [face.spec(*words, limits=limits) for face in faces]
            facts = Facts(resolvers=Resolvers((str(network.BRIDGE_ADDRESS),)))
            # They mostly wait: for answers that do not come, and for their share.
            with (
                instances(machine, specs, GOES_ON, facts, kind) as made,
                ThreadPoolExecutor(AT_ONCE) as pool,
            ):
                return dict(zip(faces, pool.map(_tried, made), strict=True))

        most = each((*WORDS, *others), LIMITS)
        shares = each((*WORDS, PROCESSOR), {"cpu": share})
    return Report(plain, {face: {**most[face], **shares[face]} for face in faces}, found)


def _there(machine: Machine, other: Instance, found: Mapping[str, Target]) -> dict[str, Any]:
    """What there is to attack."""
    files = ("/tmp/attempt-target", "/dev/shm/attempt-target", "/home/attempt/file")
    for path in (*files, f"{STATE}/file", "/usr/lib/modules/attempt"):
        machine.write(path, "there", mode=0o600 if "shm" in path else 0o644)
    known = properties(machine, other.service, "MainPID", "UID")
    return {
        "state": STATE,
        "pid": int(known["MainPID"]),
        "uid": int(known["UID"]),
        "socket": f"/run/mcp-bridge/{other.name}.sock",
        "credential": f"/run/credentials/{other.service}/TOKEN",
        "abstract": ABSTRACT,
        "targets": {name: (one.address, PORT, one.by_tcp) for name, one in found.items()},
    }


def _tried(one: Instance) -> Found:
    said = one.told(within=WITHIN)
    assert said, f"{one.name} has said nothing; its journal says why"
    found: Found = json.loads(said)
    return found
