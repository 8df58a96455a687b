"""Processes for the tests of the runtimes: rt_child.py MODE [WORD…]. The modes are functions.

Standard library only and in one file: its text is handed to a python that may run as a uid which
cannot read this folder. Most modes print one line of JSON and then wait for the end of stdin.
"""

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn


def say(value: Any = "ready") -> None:
    os.write(1, json.dumps(value).encode() + b"\n")


def until_eof() -> None:
    while os.read(0, 65536):
        pass


def for_ever() -> NoReturn:
    while True:
        signal.pause()


def status() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return dict(line.split(":\t", 1) for line in lines)


def tell() -> None:
    """Everything that it was given."""
    told = status()
    umask = os.umask(0)
    open_now = {int(path.name) for path in Path("/proc/self/fd").iterdir()}
    descriptors = sorted(fd for fd in open_now if Path(f"/proc/self/fd/{fd}").exists())
    say(
        {
            "uid": os.getuid(),
            "gid": os.getgid(),
            "groups": os.getgroups(),
            "cwd": str(Path.cwd()),
            "mode": Path().stat().st_mode & 0o7777,
            "environ": dict(os.environ),
            "umask": umask,
            "descriptors": descriptors,
            "files": resource.getrlimit(resource.RLIMIT_NOFILE),
            "core": resource.getrlimit(resource.RLIMIT_CORE),
            "processes": resource.getrlimit(resource.RLIMIT_NPROC),
            "unlimited": [
                resource.getrlimit(kind) == (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
                for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU)
            ],
            "no_new_privs": told["NoNewPrivs"],
            "group": os.getpgrp(),
            "session": os.getsid(0),
            "argv": sys.argv[1:],
        }
    )
    until_eof()


def sibling() -> None:
    """A child in the same group that ignores SIGTERM."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for_ever()
    say([pid])
    until_eof()


def escape(how: str, then: str = "wait") -> None:
    """A daemon: forked twice, a session of its own, ignoring SIGTERM; its own child as well."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = os.fork()
        if child:
            os.write(writer, f"[{os.getpid()}, {child}]".encode())
        os.close(writer)
        if how == "bare":  # without the environment that it was started with
            code = "import signal\nwhile True: signal.pause()"
            os.execve(sys.executable, [sys.executable, "-S", "-c", code], {})  # noqa: S606
        for_ever()
    os.close(writer)
    pids = json.loads(os.read(reader, 100))
    os.wait()
    say(pids)
    if then == "wait":
        until_eof()


def brood(number: str) -> None:
    """Many daemons that end at once, each as an orphan."""
    for _ in range(int(number)):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os._exit(0)
            os._exit(0)
    for _ in range(int(number)):
        os.wait()
    say()
    until_eof()


def hog(mebibytes: str) -> None:
    held = bytearray(int(mebibytes) << 20)
    held[::4096] = b"x" * len(held[::4096])
    say()
    until_eof()


def share(mebibytes: str, number: str) -> None:
    """Children that share the parent's memory instead of having their own."""
    held = b"x" * (int(mebibytes) << 20)
    for _ in range(int(number)):
        if os.fork() == 0:
            while os.getppid() != 1 and held:
                signal.pause()
    say()
    until_eof()


def flood(size: str, line: str) -> None:
    """That many bytes of stderr in lines of this length (0: in one), then ready."""
    left = int(size)
    piece = b"x" * 65536 if line == "0" else (b"x" * (int(line) - 1) + b"\n") * 64
    while left > 0:
        left -= os.write(2, piece[:left])
    say()
    until_eof()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
