"""What an instance's unit runs at its end, as root: write down how the invocation ended.

    ExecStopPost=-+/usr/bin/python3 -I -S ended.py INSTANCE

One file for each, /run/mcp-bridge/ended/<INVOCATION_ID>.json, there whole or not at all, 0640 for
the directory's group, at most MOST_BYTES; the newest KEPT of an instance are kept. Keys:
instance, invocation, result ($SERVICE_RESULT), code ($EXIT_CODE), status ($EXIT_STATUS: a number,
or the signal's name without SIG; empty when no process was started), oom_kill (kills by the kernel
in the unit's cgroup), stderr (the last lines, oldest first; null: the journal did not answer in
time, and the file is written again when it does); where the set-up failed for want of a credential,
detail (which). Everything in it but the lines comes from systemd, the kernel or the unit's files; the
lines are the server's own words, without the values of its credentials as far as they stand there
as they are. Nothing else is redacted.
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
DROP_INS = "/etc/systemd/system/autobot-mcp-bridge@{}.service.d"
# A command with "+" has all rights but the unit's own view of /run, where it is not there any more
# (252 and 257, measured); process 1 still holds it.
CREDENTIALS = "/proc/1/root/run/credentials/autobot-mcp-bridge@{}.service"
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
NO_CREDENTIAL = 243
STORES = ("/etc/credstore/", "/etc/mcp-bridge/credstore.encrypted/")
MOST_DETAIL = 1024  # characters
REDACTED = "«redacted»".encode()
SHORTEST = 7  # bytes of a value that is looked for, as in model/redact.py
MOST_VALUES = 500  # lines of one credential that are looked for, each by itself
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


def lost_credentials(folder: str) -> str:
    """Which of the unit's credentials has no file: the cause of status 243, from its drop-ins."""
    lost, encrypted = [], []
    for line in settings(folder):
        directive, _, value = line.partition("=")
        credential, _, path = value.replace("%%", "%").partition(":")
        if not directive.startswith("LoadCredential") or not path.startswith("/"):
            continue
        variable, secret = credential.partition(".")[0], path.rpartition("/")[2]
        if directive.endswith("Encrypted"):
            encrypted.append(secret)
        if not os.path.exists(path):
            help_ = f"; run: mcp-bridge secret set {secret}" if path.startswith(STORES) else ""
            lost.append(f"{variable}: there is no {path}{help_}")
    if not lost and encrypted:
        lost = [f"the files are there; this host cannot decrypt one of {', '.join(encrypted)}"]
    return "; ".join(lost)[:MOST_DETAIL]


def settings(folder: str) -> list[str]:
    """The lines of the unit's drop-ins; none where they cannot be read."""
    lines = []
    try:
        for name in sorted(os.listdir(folder)):
            with open(f"{folder}/{name}", encoding="utf-8", errors="replace") as text:
                lines += text.read().splitlines()
    except OSError:
        pass  # they go just now
    return lines


def secret_values(folder: str) -> list[bytes]:
    """The credentials' values and their lines, the longest first; none where there are none."""
    values = set()
    try:
        for name in os.listdir(folder):
            with open(f"{folder}/{name}", "rb") as file:
                whole = file.read().strip()
            values |= {whole, *(line.strip() for line in whole.split(b"\n", MOST_VALUES))}
    except OSError:
        pass  # the unit has no credentials
    return sorted((value for value in values if len(value) >= SHORTEST), key=len, reverse=True)


class Lines:
    """The invocation's last lines, from a journalctl that may take its time."""

    def __init__(self, invocation: str, secrets: list[bytes]) -> None:
        self._secrets = secrets
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
                for secret in self._secrets:
                    self._data = self._data.replace(secret, REDACTED)
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
        if record["status"] == NO_CREDENTIAL:
            record["detail"] = lost_credentials(DROP_INS.format(instance))
        write(invocation, encode(record, []))
        forget_older(instance, invocation)
        return
    flush_journal(began + FIRST_WAIT / 2)
    journal = Lines(invocation, secret_values(CREDENTIALS.format(instance)))
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
