"""CPU and memory of a gateway's process tree, apart from the stdio servers that it hosts.

CPU is user + system. A live process is read by its CPU clock, which counts as /proc/PID/stat does
but in nanoseconds rather than in ticks of 10 ms; children already reaped are known in ticks only.
"""

import os
import re
import time
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
CPUCLOCK_SCHED = 2  # linux/posix-timers.h; the clock id is (~pid << 3) | kind


def _stat(pid):
    """(parent, seconds of CPU of its reaped children), or None when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the name before it may hold anything
    if fields[0] == "Z":
        return None
    return int(fields[1]), (int(fields[13]) + int(fields[14])) / TICK


def _seconds(pid):
    try:
        return time.clock_gettime((~pid << 3) | CPUCLOCK_SCHED)
    except OSError:
        return 0.0


def tree(roots):
    """Every live pid under the roots, the roots too."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _stat(entry.name)):
            children.setdefault(stat[0], []).append(int(entry.name))
    found, todo = [], list(roots)
    while todo:
        pid = todo.pop()
        if _stat(pid) and pid not in found:
            found.append(pid)
            todo += children.get(pid, [])
    return found


def split(roots, hosted):
    """(pids of the gateway, pids of hosted servers: those with argv[0] or argv[1] ending in it)."""
    gateway, servers = [], []
    for pid in tree(roots):
        try:
            argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        is_server = any(word.endswith(hosted.encode()) for word in argv[:2])
        (servers if is_server else gateway).append(pid)
    return gateway, servers


class CpuMeter:
    """CPU seconds spent between its making and `read()`; the tree is listed once, at the start.

    A gateway that starts processes in between (one a request, say) is charged for them when they
    have been reaped, together with the servers it reaped: such a gateway has no other figure.
    """

    def __init__(self, roots, hosted):
        self.gateway, self.servers = split(roots, hosted)
        self.begin = self._now()

    def _now(self):
        own = [_seconds(pid) + (stat[1] if (stat := _stat(pid)) else 0) for pid in self.gateway]
        return sum(own), sum(_seconds(pid) for pid in self.servers)

    def read(self):
        """(the gateway's seconds, the hosted servers' seconds)."""
        return tuple(end - begin for end, begin in zip(self._now(), self.begin, strict=True))


def stolen():
    """(jiffies that a virtual machine's host took from all CPUs so far, all jiffies)."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    return int(fields[7]), sum(map(int, fields))


def memory(roots, hosted):
    """PSS in MiB and number of processes of the gateway, and of the servers it hosts."""
    row = {}
    for who, pids in zip(("gateway", "servers"), split(roots, hosted), strict=True):
        kib = 0
        for pid in pids:
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
            except OSError:
                continue
            kib += int(re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)[1])
        row |= {f"{who}_pss_mib": round(kib / 1024, 1), f"{who}_processes": len(pids)}
    return row
