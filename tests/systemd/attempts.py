"""Tries what a server must not be able to do, and prints what came of each attempt as JSON.

    attempts.py MACHINE.json     # what there is on this machine to attack

`done`, or the error's name. It runs in an instance, and in a plain unit to show that it can.
"""

import errno
import json
import mmap
import os
import socket
import subprocess
import sys
from pathlib import Path


def write(path):
    Path(path).write_text("x", encoding="utf-8")
    Path(path).unlink()


def execute(folder):
    program = Path(folder, "attempt.sh")
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    try:
        subprocess.run([program], check=True)
    finally:
        program.unlink()


def make(family):
    socket.socket(family, socket.SOCK_DGRAM).close()


def connect(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(path)


def become(uid):
    os.setresuid(uid, 0, 0)
    os.setresuid(0, 0, 0)


def namespace():
    # unshare(2) changes its caller, so that a child tries it.
    subprocess.run(["unshare", "--mount", "true"], check=True, stderr=subprocess.DEVNULL)


def attempts(there):
    home = os.environ.get("HOME", "/root")
    return {
        "write below /usr": lambda: write("/usr/local/attempt"),
        "write below /etc": lambda: write("/etc/attempt"),
        "write below /srv": lambda: write("/srv/attempt"),
        "read another's /tmp": lambda: Path("/tmp/attempt-target").read_bytes(),
        "read a home": lambda: Path("/home/attempt/file").read_bytes(),
        "read another's state": lambda: Path(there["state"], "file").read_bytes(),
        "write another's state": lambda: write(f"{there['state']}/new"),
        "become another's uid": lambda: become(there["uid"]),
        "signal another": lambda: os.kill(there["pid"], 0),
        "see another": lambda: Path(f"/proc/{there['pid']}/status").read_bytes(),
        "connect to another's socket": lambda: connect(there["socket"]),
        "make an AF_INET socket": lambda: make(socket.AF_INET),
        "make an AF_UNIX socket": lambda: make(socket.AF_UNIX),
        "make an AF_NETLINK socket": lambda: make(socket.AF_NETLINK),
        "execute from its own directory": lambda: execute(home),
        "execute from /tmp": lambda: execute("/tmp"),
        "execute from /dev/shm": lambda: execute("/dev/shm"),
        "make code at run time": lambda: mmap.mmap(
            -1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        ),
        "make a namespace": namespace,
        "read a credential's source": lambda: Path("/etc/credstore/attempt").read_bytes(),
        "read a record": lambda: list(Path("/run/mcp-bridge/ended").iterdir()),
    }


def result(attempt):
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    except subprocess.CalledProcessError as error:
        return f"status {error.returncode}"
    return "done"


def main():
    there = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    found = {name: result(attempt) for name, attempt in attempts(there).items()}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
