"""Looks for words in all that whoever runs it can see of a machine, and tells where they are.

    searching.py UNIT... < {"words": {"NAME": "the word's bytes in hexadecimal"}}

Prints {NAME: {PLACE: [WHERE, ...]}}, and under "" how many things were looked at by place.
The words come in hexadecimal so that the search does not find itself.
"""

import json
import os
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

COMMAND_WITHIN = 60.0
MOST_BYTES = 8 << 20  # of one file
TREES = {
    "unit files": ("/etc/systemd", "/usr/lib/systemd/system", "/usr/lib/mcp-bridge/ended.py"),
    "/run": ("/run",),
    "state": ("/var/lib/mcp-bridge", "/var/cache/mcp-bridge", "/etc/mcp-bridge"),
    "cores": ("/var/lib/systemd/coredump", "/var/crash", "/core", "/var/lib/private/mcp-bridge"),
    "temporary files": ("/tmp", "/var/tmp", "/dev/shm"),
    "secrets": ("/etc/credstore", "/etc/acme"),
}
OBJECTS = "/org/freedesktop/systemd1/unit/"
MANAGER = "org.freedesktop.systemd1"


def bus_path(unit: str) -> str:
    """As sd_bus_path_encode(3) writes it."""
    return OBJECTS + "".join(c if c.isalnum() else f"_{ord(c):02x}" for c in unit)


def commands(units: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "systemctl show", ("systemctl", "show", "--all", *units)
    yield "systemctl show", ("systemctl", "show", "--all", "*")
    yield "systemctl cat", ("systemctl", "cat", *units)
    yield "systemctl status", ("systemctl", "status", "--full", "--lines=1000", *units)
    for unit in units:
        words = ("busctl", "call", MANAGER, bus_path(unit), "org.freedesktop.DBus.Properties")
        yield "D-Bus", (*words, "GetAll", "s", "")
    yield "journal", ("journalctl", "--output=export", "--all", "--no-pager")
    yield "coredumpctl", ("coredumpctl", "info", "--no-pager")


def output(words: tuple[str, ...]) -> bytes:
    try:
        done = subprocess.run(
            words,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COMMAND_WITHIN,
        )
    except OSError:
        return b""  # it is not there, or not for us
    return done.stdout + done.stderr


def content(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def processes() -> Iterator[tuple[str, str, bytes]]:
    own = {str(os.getpid())}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or folder.name in own:
            continue
        for name in ("environ", "cmdline", "maps", "comm", "cgroup"):
            yield f"/proc {name}", str(folder / name), content(folder / name)
        try:
            descriptors = list((folder / "fd").iterdir())
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                target = descriptor.readlink()
            except OSError:
                continue
            found = os.fsencode(target) + b"\0" + content(descriptor)
            yield "/proc fd", f"{descriptor} -> {target}", found


def files() -> Iterator[tuple[str, str, bytes]]:
    for place, roots in TREES.items():
        for root in roots:
            for folder, names, leaves in os.walk(root):
                for name in (*names, *leaves):
                    path = Path(folder, name)
                    link = os.fsencode(path.readlink()) if path.is_symlink() else b""
                    yield place, str(path), os.fsencode(path) + b"\0" + link + content(path)


def everything(units: list[str]) -> Iterator[tuple[str, str, bytes]]:
    """Place, what it is, what stands there."""
    for place, words in commands(units):
        yield place, " ".join(words)[:100], output(words)
    yield from processes()
    yield from files()


def search(words: dict[str, str], units: list[str]) -> dict[str, dict[str, list[str]]]:
    known = {name: bytes.fromhex(word) for name, word in words.items()}
    found: dict[str, dict[str, list[str]]] = {name: {} for name in words}
    looked: Counter[str] = Counter()
    for place, what, text in everything(units):
        looked[place] += bool(text)
        for name, word in known.items():
            if word in text:
                found[name].setdefault(place, []).append(what)
    return {**found, "": {place: [str(number)] for place, number in looked.items()}}


if __name__ == "__main__":
    print(json.dumps(search(json.load(sys.stdin)["words"], sys.argv[1:])))
