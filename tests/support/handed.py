"""The proxy's side of a launcher: connect, take the pipes, read how it went on."""

import json
import os
import select
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from support.waiting import PATIENCE, WITHIN

# 107 bytes fit into an address (unix(7)); a path through /proc/PID/root is longer.
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def connect(path: Path, *, within: float = WITHIN) -> socket.socket:
    """Connect to a socket, however long its path is; each of its waits is bounded."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(within * PATIENCE)
    folder = os.open(path.parent, _DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{path.name}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection


@dataclass
class Handed:
    """What came over the connection, which stays open until its end is read."""

    connection: socket.socket
    invocation: str
    stdin: int
    stdout: int

    def rest(self) -> bytes:
        """All that comes on the connection after the hello: nothing, or an error line."""
        with self.connection as connection:
            return b"".join(iter(lambda: connection.recv(4096), b""))

    def error(self) -> str:
        return json.loads(self.rest())["error"]

    def say(self, message: object) -> None:
        os.write(self.stdin, json.dumps(message).encode() + b"\n")

    def read(self, enough=lambda data: False, *, within: float = WITHIN) -> bytes:
        """What the server writes until its stdout ends or it is enough.

        Raises:
            AssertionError: neither came.
        """
        data, deadline = b"", time.monotonic() + within * PATIENCE
        while not enough(data):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.stdout], [], [], left)[0]:
                raise AssertionError(f"not within {within} s, only {data!r}")
            more = os.read(self.stdout, 1 << 16)
            if not more:
                break
            data += more
        return data

    def line(self) -> dict:
        return json.loads(self.read(lambda data: data.endswith(b"\n")))

    def close(self) -> None:
        self.connection.close()
        for name in ("stdin", "stdout"):
            if getattr(self, name) >= 0:
                os.close(getattr(self, name))
                setattr(self, name, -1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def take(connection: socket.socket) -> Handed:
    """Wait for the hello and its two descriptors; the connection is closed if they do not come.

    Raises:
        EOFError: the connection ended without them.
    """
    try:
        data, descriptors, _, _ = socket.recv_fds(connection, 4096, 4)
    except OSError:
        connection.close()
        raise
    if len(descriptors) != 2:
        connection.close()
        raise EOFError(f"no hello, but {data!r}")
    hello, _, more = data.partition(b"\n")
    assert not more, f"an error line came at once: {more!r}"
    return Handed(connection, json.loads(hello)["invocation"], *descriptors)
