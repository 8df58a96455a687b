"""What mcp-bridge-probe.service runs in the servers' sandbox: try what the sandbox forbids.

    python3 -I -S probe.py

Prints as JSON for each promise (autobot_mcp_bridge/model/promises.py) whether this host keeps it
and, where not, why. Nothing is guessed from versions: a promise is kept when the attempt fails as
it should. The limits that are tried stand in the unit, and below.
"""

import errno
import json
import mmap
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable

CGROUPS = "/sys/fs/cgroup"
MEMORY_HIGH = 63 << 20
TOO_MUCH_MEMORY = 128 << 20
TOO_MANY_TASKS = 32
# CPUQuota=20%, of which the kernel has 20 ms in each 100 ms; the seconds are seven of those.
CPU_QUOTA, CPU_SHARE = "20000", 0.2
CPU_SECONDS, CPU_WITHIN = 0.15, 3.0
# Seconds, for each attempt that waits; two of them have to be over before TimeoutStartSec=. A slow
# host needs more than 10 for what takes others a tenth of one, with a fifth of a processor.
WITHIN = 20.0
WEIGHT = "50"  # of 100: 512 shares of 1024 with v1 (systemd, cgroup-util.h)
SHARES = "512"


class BrokenError(Exception):
    """The promise is not kept; the message is a clause that says why."""


def groups() -> dict[str, str]:
    """Controller to the directory of this process's cgroup; "" is the unified hierarchy."""
    found = {}
    with open("/proc/self/cgroup", encoding="ascii") as lines:
        for line in lines:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            for name in controllers.split(","):
                found[name] = f"{CGROUPS}/{controllers}{path}" if name else f"{CGROUPS}{path}"
    return found


def text(controller: str, *names: str) -> str | None:
    """The first of these files of the controller that is there, v2's and then v1's."""
    own = groups()
    for folder in (own.get(""), own.get(controller)):
        for name in names:
            try:
                with open(f"{folder}/{name}", encoding="ascii") as file:
                    return file.read().strip()
            except OSError:
                continue
    return None


def pairs(controller: str, *names: str) -> dict[str, str]:
    lines = (text(controller, *names) or "").splitlines()
    return dict(line.split(None, 1) for line in lines if " " in line)


def missing(controller: str) -> str:
    return f"its unit has no cgroup controller {controller}"


def memory() -> None:
    child = os.fork()
    if child == 0:
        held = bytearray(TOO_MUCH_MEMORY)
        held[:: mmap.PAGESIZE] = b"x" * len(held[:: mmap.PAGESIZE])
        os._exit(0)
    deadline = time.monotonic() + WITHIN
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise BrokenError("a process that took too much was slowed down, and not ended")
    if os.WIFSIGNALED(ended[1]) and os.WTERMSIG(ended[1]) == signal.SIGKILL:
        return
    here = text("memory", "memory.max", "memory.limit_in_bytes") is not None
    why = "the kernel does not enforce it" if here else missing("memory")
    raise BrokenError(f"twice as much as was allowed could be used: {why}")


def memory_high() -> None:
    found = text("memory", "memory.high")
    if found is None:
        here = text("memory", "memory.limit_in_bytes") is not None
        raise BrokenError("cgroup v1 has no soft limit" if here else missing("memory"))
    if found != str(MEMORY_HIGH):
        raise BrokenError(f"memory.high is {found}")


def memory_cause() -> None:
    memory()
    found = pairs("memory", "memory.events", "memory.oom_control").get("oom_kill", "0")
    if found == "0":
        raise BrokenError("the kernel does not count what it ends")


def swap() -> None:
    if text("memory", "memory.swap.max") == "0":
        return
    with open("/proc/swaps", encoding="utf-8") as file:
        if len(file.readlines()) > 1:
            raise BrokenError("the host has swap, and no limit on its use")


def tasks() -> None:
    inside, outside = os.pipe()
    children: list[int] = []
    try:
        while len(children) < TOO_MANY_TASKS:
            child = os.fork()
            if child == 0:
                os.close(outside)
                os.read(inside, 1)
                os._exit(0)
            children.append(child)
    except BlockingIOError:
        return
    finally:
        os.close(outside)
        for child in children:
            os.waitpid(child, 0)
        os.close(inside)
    why = "" if text("pids", "pids.max") is not None else f": {missing('pids')}"
    raise BrokenError(f"{TOO_MANY_TASKS} processes could be started where 16 are allowed{why}")


def cpu() -> None:
    quota = (text("cpu", "cpu.max", "cpu.cfs_quota_us") or "").split()
    if not quota:
        raise BrokenError(missing("cpu"))
    if quota[0] != CPU_QUOTA:
        raise BrokenError(f"the kernel has {quota[0]} us instead")
    before = pairs("cpu", "cpu.stat").get("nr_throttled")
    burnt, began = time.process_time(), time.monotonic()
    while time.process_time() - burnt < CPU_SECONDS and time.monotonic() - began < CPU_WITHIN:
        pass
    if pairs("cpu", "cpu.stat").get("nr_throttled") != before:
        return
    # A host that is so busy that others leave it less cannot be tried, and has the limit.
    if time.process_time() - burnt > CPU_SHARE * (time.monotonic() - began):
        raise BrokenError("it got more, and was held up at no time")


def cpu_weight() -> None:
    found = text("cpu", "cpu.weight", "cpu.shares")
    if found is None:
        raise BrokenError(missing("cpu"))
    if found not in (WEIGHT, SHARES):
        raise BrokenError(f"the kernel has {found} instead")


def io_weight() -> None:
    names = ("io.bfq.weight", "io.weight", "blkio.bfq.weight", "blkio.weight")
    if text("io", *names) is None and text("blkio", *names) is None:
        raise BrokenError(missing("io"))
    schedulers = []
    for disk in os.listdir("/sys/block"):
        try:
            with open(f"/sys/block/{disk}/queue/scheduler", encoding="ascii") as file:
                schedulers.append(file.read())
        except OSError:
            continue
    try:
        with open(f"{CGROUPS}/io.cost.qos", encoding="ascii") as file:
            costs = file.read()
    except OSError:
        costs = ""
    if not any("[bfq]" in found for found in schedulers) and "enable=1" not in costs:
        raise BrokenError("no disk has the scheduler bfq, and io.cost is off")


def network() -> None:
    with open("/proc/self/net/dev", encoding="ascii") as file:
        names = [line.partition(":")[0].strip() for line in file if ":" in line]
    others = [name for name in names if name != "lo"]
    if others:
        raise BrokenError(f"it sees {', '.join(others[:3])}")


def addresses() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        try:
            own.sendto(b"x", own.getsockname())
        except PermissionError:
            return
        if select.select([own], [], [], 1.0)[0]:
            raise BrokenError("what was sent to a denied address has come there")
    # Dropped on the way in instead of on the way out.


def refused(attempt: Callable[[], object], done: str) -> None:
    try:
        attempt()
    except PermissionError:
        return
    raise BrokenError(done)


def syscalls() -> None:
    refused(lambda: os.setpriority(os.PRIO_PROCESS, 0, 5), "a forbidden system call was made")


def code() -> None:
    everything = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    refused(
        lambda: mmap.mmap(-1, mmap.PAGESIZE, prot=everything), "memory is writable and executable"
    )


def execution() -> None:
    program = shutil.copy("/bin/true", tempfile.mkdtemp())
    os.chmod(program, 0o700)
    done = "it has executed a program of its own"
    refused(lambda: os.waitpid(os.posix_spawn(program, [program], {}), 0), done)


def files() -> None:
    for folder in ("/usr/lib", "/etc"):
        if not os.statvfs(folder).f_flag & os.ST_RDONLY:
            raise BrokenError(f"{folder} is not read-only for it")


def processes() -> None:
    if os.path.exists("/proc/1/stat"):
        raise BrokenError("it sees process 1")


def users() -> None:
    with open("/proc/self/uid_map", encoding="ascii") as file:
        if file.read().split() == ["0", "0", "4294967295"]:
            raise BrokenError("it is in no user namespace of its own")


ATTEMPTS = (
    *(memory, memory_high, memory_cause, swap, tasks, cpu, cpu_weight, io_weight, network),
    *(addresses, syscalls, code, execution, files, processes, users),
)


def tried(attempt: Callable[[], None]) -> dict[str, object]:
    try:
        attempt()
    except BrokenError as error:
        return {"kept": False, "why": str(error)}
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "an error")
        return {"kept": False, "why": f"it could not be tried: {name}"}
    return {"kept": True, "why": ""}


if __name__ == "__main__":
    json.dump({each.__name__: tried(each) for each in ATTEMPTS}, sys.stdout)
