"""The process that holds one container: it starts nspawn, again at each reboot, and cleans up.

A container lives as long as its keeper. nspawn dies with the keeper, the container's processes
die with nspawn, and the overlay's mount namespace with the last of them, so that a kill -9 leaves
empty cgroup folders and a network namespace at most; `down` and `labs.sweep` remove those.
"""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from lab import cgroups, launch, network
from lab.commands import lock_now
from lab.places import Lab, Place
from lab.problems import LabError
from lab.spec import Spec

# How nspawn tells that the container wants to boot again, instead of doing it by itself.
REBOOT = 133
# From the kill of the container's first process to the end of nspawn.
STOP_WITHIN = 10.0
_LEFT_BY_NSPAWN = Path("/run/systemd/nspawn/propagate")


@dataclass(slots=True)
class State:
    keeper: int
    boots: int = 0
    leader: int = 0  # the container's first process, as seen from here
    ready: bool = False


class Keeper:
    def __init__(self, place: Place, spec: Spec) -> None:
        self._place = place
        self._spec = spec
        self._state = State(os.getpid())
        self._told, told = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        self._ends = [self._told]

    def keep(self) -> None:
        """Hold the container until it is told to stop, powers itself off, or its owner ends."""
        self._write()
        owner = self._spec.owner
        try:
            if owner is not None:
                self._ends.append(os.pidfd_open(owner))
            if not self._spec.host_network:
                network.join(self._place)
            while self._boot() == REBOOT:
                cgroups.remove(self._place.kernel_name)
        finally:
            clean(self._place)
        if len(self._ends) > 1 and select.select(self._ends[1:], [], [], 0)[0]:
            forget(self._place)

    def _boot(self) -> int:
        self._state.boots += 1
        self._state.leader, self._state.ready = 0, False
        self._write()
        cgroups.make(self._place.kernel_name)
        # An abstract address: there is no file that could be left behind.
        address = f"{self._place.kernel_name}-{os.getpid()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
            notices.bind(f"\0{address}")
            with subprocess.Popen(
                launch.command(self._place, self._spec),
                cwd=self._place.lab.cache,
                env={**launch.ENVIRONMENT, "NOTIFY_SOCKET": f"@{address}"},
                stdin=subprocess.DEVNULL,
            ) as nspawn:
                try:
                    self._watch(nspawn, notices)
                finally:
                    nspawn.kill()
        return nspawn.returncode

    def _watch(self, nspawn: subprocess.Popen[bytes], notices: socket.socket) -> None:
        ended = os.pidfd_open(nspawn.pid)
        try:
            while True:
                watched: list[int | socket.socket] = [ended, notices, *self._ends]
                found, _, _ = select.select(watched, [], [])
                if ended in found:
                    nspawn.wait()
                    return
                if notices in found:
                    self._take(nspawn.pid, notices.recv(4096).decode("utf-8", "replace"))
                if any(end in found for end in self._ends):
                    # As a power cut; nspawn then ends by itself and takes its own files away.
                    if self._state.leader:
                        os.kill(self._state.leader, signal.SIGKILL)
                        select.select([ended], [], [], STOP_WITHIN)
                    return
        finally:
            os.close(ended)

    def _take(self, pid: int, notice: str) -> None:
        fields = dict(line.split("=", 1) for line in notice.splitlines() if "=" in line)
        if "X_NSPAWN_LEADER_PID" in fields:
            self._state.leader = _as_seen_here(pid, fields["X_NSPAWN_LEADER_PID"])
        if fields.get("READY") == "1":
            self._state.ready = True
        self._write()

    def _write(self) -> None:
        new = self._place.state.with_suffix(".new")
        new.write_text(json.dumps(asdict(self._state)), encoding="utf-8")
        new.replace(self._place.state)


def _as_seen_here(unshare: int, told: str) -> int:
    """Return the id of the process that nspawn, in a PID namespace of its own, calls so."""
    for nspawn in _children(unshare):
        for child in _children(nspawn):
            status = Path(f"/proc/{child}/status").read_text(encoding="utf-8")
            ids = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()
            # The last but one: it is the first process of a namespace of its own.
            if told == ids[-2]:
                return child
    raise LabError(f"nspawn has no process {told}")


def _children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()))


def clean(place: Place) -> None:
    """Take away everything of a container but its files; it need not be complete, or there."""
    cgroups.remove(place.kernel_name)
    network.leave(place)
    # Where /run is no tmpfs nspawn refuses to remove it.
    left = _LEFT_BY_NSPAWN / place.kernel_name
    if left.exists():
        shutil.rmtree(left)


def forget(place: Place) -> None:
    """Remove a container's files, and the lab's folder with the last one."""
    if place.folder.exists():
        shutil.rmtree(place.folder)
    with suppress(OSError):  # not empty, or another process was faster
        place.lab.folder.rmdir()


def main(cache: str, lab_id: str, name: str) -> int:
    place = Lab(Path(cache), lab_id).place(name)
    # Held, and nowhere closed: the lock is what tells that this process lives.
    alive = os.open(place.alive, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not lock_now(alive):
        print(f"{name} has a keeper already", file=sys.stderr)
        return 1
    try:
        Keeper(place, Spec.read(place)).keep()
    except (LabError, OSError) as error:
        print(f"the keeper of {name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
