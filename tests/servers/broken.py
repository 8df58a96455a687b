"""A small server of the handshake era that fails at its start in the way that is asked for.

    broken.py WAY [ARGUMENT]

Each way is a thing that real servers do and a sandbox forbids, or a fault of the server's own.
Where the thing works, the server serves.
"""

import json
import mmap
import os
import socket
import subprocess
import sys
import time
from pathlib import Path


def seccomp() -> None:
    """Have another priority, as media servers do; node's os.setPriority() is the same call."""
    os.setpriority(os.PRIO_PROCESS, 0, 5)


def code() -> None:
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC).close()


def netlink() -> None:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()


def noexec() -> None:
    """Unpack a helper into its own directory and execute it."""
    helper = Path(os.environ["HOME"], "helper")
    helper.write_bytes(Path("/bin/true").read_bytes())
    helper.chmod(0o700)
    subprocess.run([helper], check=True)


def memory() -> None:
    block = bytearray(96 << 20)
    block[::4096] = b"x" * len(block[::4096])
    globals()["kept"] = block


def credential() -> None:
    os.environ["API_KEY"]


def home() -> None:
    Path(os.environ["HOME"], ".settings").write_text("{}", encoding="utf-8")


def write() -> None:
    Path(sys.argv[2], "data").write_text("{}", encoding="utf-8")


def read() -> None:
    Path(sys.argv[2]).read_text(encoding="utf-8")


def many() -> None:
    """Hold as many descriptors as a watcher of directories does."""
    for _ in range(int(sys.argv[2])):
        os.open("/dev/null", os.O_RDONLY)


def name() -> None:
    print(socket.getaddrinfo("registry.test", 443), file=sys.stderr)


def noise() -> None:
    """Nothing: a line of its log stands before each answer."""


def buffered() -> None:
    """Nothing: the answers are written without a flush."""


def slow() -> None:
    time.sleep(float(sys.argv[2]))


def bug() -> None:
    raise SystemExit("KeyError: 'EXAMPLE_URL' (set it to the address of the example)")


def two() -> None:
    netlink()
    code()


def healthy() -> None:
    """Nothing."""


def answer(message: dict[str, object]) -> dict[str, object]:
    match message.get("method"):
        case "initialize":
            info = {"name": "broken", "version": "1"}
            result: dict[str, object] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
        case "tools/list":
            result = {"tools": [{"name": "one", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            result = {"content": [{"type": "text", "text": "served"}]}
        case _:
            error = {"code": -32601, "message": "method not found"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def main() -> None:
    globals()[sys.argv[1]]()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            if sys.argv[1] == "noise":
                print(f"[info] {message['method']} ...", end=" ")
            print(json.dumps(answer(message)), flush=sys.argv[1] != "buffered")


main()
