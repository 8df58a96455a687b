"""Takes a server's pipes as the proxy does, and prints what the server writes until its end.

    taking.py SOCKET

As JSON: `invocation`; `rest`, what the launcher told after it; `said`. Standard library only: it
runs in machines from which no descriptor can come out.
"""

import json
import os
import socket
import sys
from contextlib import suppress

LIMIT = 1 << 20  # bytes of `said`


def whole(read):
    data = b""
    while len(data) < LIMIT and (more := read(1 << 16)):
        data += more
    return data.decode("utf-8", "replace")


def main():
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        hello, descriptors, _, _ = socket.recv_fds(connection, 4096, 4)
        first, _, more = hello.partition(b"\n")
        rest = more.decode() + whole(connection.recv)
    invocation = json.loads(first)["invocation"]
    said = whole(lambda size: os.read(descriptors[1], size))
    with suppress(BrokenPipeError):
        print(json.dumps({"invocation": invocation, "rest": rest, "said": said}), flush=True)


if __name__ == "__main__":
    main()
