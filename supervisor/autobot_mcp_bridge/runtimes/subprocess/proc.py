"""What /proc tells about processes. Every call blocks shortly; a process that is gone is None.

Paths are plain strings here: these are read for every server twice a second.
"""

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass

_PAGE = os.sysconf("SC_PAGE_SIZE")
_READ = 1 << 16
_MOST = 1 << 21  # an environment can be this large (execve(2)), nothing else comes near
_UIDS = re.compile(rb"^Uid:\t(\d+)", re.MULTILINE)
_ROLLUP = re.compile(rb"^(?:Pss_Anon|Pss_Shmem|SwapPss): +(\d+) kB", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Seen:
    """One process at one moment (proc_pid_stat(5)); pid and start together never come again."""

    pid: int
    parent: int
    session: int
    start: int  # in clock ticks since boot
    resident: int  # in bytes, shared pages included
    zombie: bool


def look(pid: int) -> Seen | None:
    """The process, or None when there is none."""
    data = _read(f"/proc/{pid}/stat")
    if not data:
        return None
    # The name may hold anything, spaces and parentheses included.
    fields = data[data.rindex(b")") + 2 :].split()
    return Seen(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        start=int(fields[19]),
        resident=int(fields[21]) * _PAGE,
        zombie=fields[0] in b"ZX",
    )


def children(pid: int, *, all_threads: bool = True) -> Iterator[int]:
    """The direct children; of the first thread only, which is cheaper, or of all."""
    if not all_threads:
        yield from map(int, _read(f"/proc/{pid}/task/{pid}/children").split())
        return
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - a third of the cost
    except OSError:
        return
    for thread in threads:
        yield from map(int, _read(f"/proc/{pid}/task/{thread}/children").split())


def tree(pid: int, *, all_threads: bool = True) -> dict[int, Seen]:
    """The process and all below it, zombies left out; best effort while they fork."""
    found: dict[int, Seen] = {}
    waiting = [pid]
    while waiting:
        seen = look(waiting.pop())
        if seen is None or seen.zombie or seen.pid in found:
            continue
        found[seen.pid] = seen
        waiting += children(seen.pid, all_threads=all_threads)
    return found


def variable(pid: int, name: str) -> str | None:
    """A variable of the environment that the process was started with."""
    wanted = name.encode() + b"="
    for pair in _read(f"/proc/{pid}/environ").split(b"\0"):
        if pair.startswith(wanted):
            return pair[len(wanted) :].decode("utf-8", "replace")
    return None


def uid(pid: int) -> int | None:
    """Its real uid; the owner of /proc/PID would be root for a process that is not dumpable."""
    match = _UIDS.search(_read(f"/proc/{pid}/status"))
    return int(match[1]) if match else None


def no_new_privs(pid: int) -> bool:
    """Whether it can never gain privileges: inherited, and for zombies still told."""
    return b"\nNoNewPrivs:\t1\n" in _read(f"/proc/{pid}/status")


def own_memory(pid: int) -> int | None:
    """Bytes that ending the process would give back, each shared page counted in part.

    Files that are only mapped do not count. None: the kernel does not let us look.
    """
    figures = _ROLLUP.findall(_read(f"/proc/{pid}/smaps_rollup"))
    return sum(map(int, figures)) * 1024 if figures else None


def kill(seen: Seen) -> bool:
    """SIGKILL to exactly this process, never to a later one with its pid."""
    try:
        pidfd = os.pidfd_open(seen.pid)
    except OSError:
        return False
    try:
        now = look(seen.pid)
        if now is None or now.start != seen.start:
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(pidfd)
    return True


def _read(path: str) -> bytes:
    """The whole file, or nothing when the process is gone or may not be looked at."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    data = b""
    try:
        while len(data) < _MOST and (more := os.read(fd, _READ)):
            data += more
    except OSError:
        return b""
    finally:
        os.close(fd)
    return data
