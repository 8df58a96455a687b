"""What an instance's unit runs at its end, as root: write down how the invocation ended.

    ExecStopPost=-+/usr/bin/python3 -I -S ended.py INSTANCE

One file for each, /run/mcp-bridge/ended/<INVOCATION_ID>.json, there whole or not at all, 0640 for
the directory's group, at most MOST_BYTES; the newest KEPT of an instance are kept. Keys:
instance, invocation, result ($SERVICE_RESULT), code ($EXIT_CODE), status ($EXIT_STATUS: a number,
or the signal's name without SIG; empty when no process was started), oom_kill (kills by the kernel
in the unit's cgroup), stderr (the last lines, oldest first; null: the journal did not answer in
time, and the file is written again when it does). Everything in it but the lines comes from systemd
or the kernel; the lines are the server's own words, not redacted.
"""

import _signal  # type: ignore[import-not-found]  # as in launch.py: json and re would take longest
import _socket
import os
import select
import sys
import time
from _json import encode_basestring

ENDED = "/run/mcp-bridge/ended"
CGROUPS = "/sys/fs/cgroup"
JOURNALCTL = "/usr/bin/journalctl"
JOURNAL = "/run/systemd/journal/io.systemd.journal"
KEPT = 3
MOST_BYTES = 4096
MOST_LINES = 20
LINE_BYTES = 1024
# The proxy waits 0.3 s for the file: so long for its first form, then so long for the lines.
FIRST_WAIT = 0.2
LAST_WAIT = 2.0
# systemd's own statuses for a set-up that failed (systemd.exec(5), "Process Exit Codes"), but 203,
# which is the launcher's too. The socket starts the unit again and again then, until its
# TriggerLimit is reached: nothing has been said, and looking for it would slow that down.
SET_UP = frozenset(range(200, 246)) - {203}
ALARM = 4  # seconds, below TimeoutStopSec: whatever hangs, the unit's end does not


def oom_kills(groups: str) -> int:
    """The kills in the cgroup of this process, which is the unit's own (cgroups(7))."""
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            file = f"{CGROUPS}/memory{path}/memory.oom_control"
        elif not controllers:
            file = f"{CGROUPS}{path}/memory.events"
        else:
            continue
        try:
            with open(file, encoding="ascii") as text:
                values = dict(line.split() for line in text)
            return int(values["oom_kill"])
        except (OSError, LookupError):
            continue  # a v1 machine has the v2 tree without the memory controller, or the reverse
    return 0


def flush_journal(deadline: float) -> None:
    """Ask journald to take in what the server wrote last, as `journalctl --sync` does."""
    journal = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        journal.settimeout(max(0.01, deadline - time.monotonic()))
        journal.connect(JOURNAL)
        journal.sendall(b'{"method":"io.systemd.Journal.Synchronize"}\0')
        journal.recv(1024)
    except OSError:
        pass  # then the last lines may be missing
    finally:
        journal.close()


class Lines:
    """The invocation's last lines, from a journalctl that may take its time."""

    def __init__(self, invocation: str) -> None:
        self._out, end = os.pipe()
        words = [JOURNALCTL, "--quiet", "--no-pager", "--output=cat", "--all"]
        words += [f"--lines={MOST_LINES}", "_TRANSPORT=stdout"]
        words.append(f"_SYSTEMD_INVOCATION_ID={invocation}")
        null = os.open("/dev/null", os.O_RDWR)
        wiring = [(os.POSIX_SPAWN_DUP2, own, to) for own, to in ((null, 0), (end, 1), (null, 2))]
        environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        self.pid = os.posix_spawn(words[0], words, environment, file_actions=wiring)
        os.close(end)
        self._data = b""

    def read(self, deadline: float) -> list[str] | None:
        """The lines, or None when journalctl has not ended by then."""
        while select.select([self._out], [], [], max(0.0, deadline - time.monotonic()))[0]:
            data = os.read(self._out, 1 << 16)
            if not data:
                lines = self._data.split(b"\n")[-MOST_LINES - 1 :]
                return [line[:LINE_BYTES].decode("utf-8", "replace") for line in lines if line]
            # The last lines are at the end, however long the others are.
            self._data = (self._data + data)[-MOST_LINES * (LINE_BYTES << 4) :]
        return None


def encode(record: dict[str, str | int], lines: list[str] | None) -> bytes:
    """The record as JSON, with as many of the last lines as fit."""
    head = ", ".join(
        f'"{key}": {value if isinstance(value, int) else encode_basestring(value)}'
        for key, value in record.items()
    )
    kept = lines
    while True:
        said = "null" if kept is None else f"[{', '.join(map(encode_basestring, kept))}]"
        data = f'{{{head}, "stderr": {said}}}\n'.encode()
        if len(data) <= MOST_BYTES or not kept:
            return data
        kept = kept[1:]


def write(invocation: str, data: bytes) -> None:
    draft = f"{ENDED}/.{invocation}.new"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, data)
        os.fchown(descriptor, 0, os.stat(ENDED).st_gid)  # the group's id without asking NSS
        os.fchmod(descriptor, 0o640)
    finally:
        os.close(descriptor)
    os.rename(draft, f"{ENDED}/{invocation}.json")


def forget_older(instance: str, invocation: str) -> None:
    """Remove the records of this instance beyond KEPT.

    A folder of its own tells which they are: to read all others' at each end would be slow.
    """
    folder = f"{ENDED}/.of/{instance}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    number = 1 + max((int(name.split(".")[0]) for name in os.listdir(folder)), default=0)
    with open(f"{folder}/{number}.{invocation}", "wb"):
        pass
    names = sorted(os.listdir(folder), key=lambda name: int(name.split(".")[0]))
    for name in names[:-KEPT]:
        try:
            os.unlink(f"{ENDED}/{name.split('.')[1]}.json")
        except FileNotFoundError:
            pass
        os.unlink(f"{folder}/{name}")


def main(instance: str) -> None:
    began = time.monotonic()
    given = os.environ
    invocation = given["INVOCATION_ID"]
    if not invocation.isalnum() or "/" in instance or instance.startswith("."):
        raise ValueError("not started by systemd for an instance of ours")
    status = given.get("EXIT_STATUS", "")
    with open("/proc/self/cgroup", encoding="utf-8") as text:
        kills = oom_kills(text.read())
    record: dict[str, str | int] = {
        "instance": instance,
        "invocation": invocation,
        "result": given.get("SERVICE_RESULT", ""),
        "code": given.get("EXIT_CODE", ""),
        "status": int(status) if status.isdecimal() else status,
        "oom_kill": kills,
    }
    if record["code"] == "exited" and record["status"] in SET_UP:
        write(invocation, encode(record, []))
        forget_older(instance, invocation)
        return
    flush_journal(began + FIRST_WAIT / 2)
    journal = Lines(invocation)
    lines = journal.read(began + FIRST_WAIT)
    write(invocation, encode(record, lines))
    forget_older(instance, invocation)
    if lines is None:
        lines = journal.read(began + LAST_WAIT)
        if lines is None:
            os.kill(journal.pid, _signal.SIGKILL)
        else:
            write(invocation, encode(record, lines))


if __name__ == "__main__":
    _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
    _signal.alarm(ALARM)
    try:
        main(sys.argv[1])
    except (OSError, ValueError, LookupError) as error:
        # The end is never failed by this (nor by anything else: the "-" of ExecStopPost=).
        print(f"no record of this end: {type(error).__name__}: {error}", file=sys.stderr)
