"""Fetching a server's pipes from its unit's socket: connect is start (templates/launch.py).

The connection starts the unit. What comes over it: one hello line with the two pipe ends, then its
end (the server runs) or an error line (it does not). An end without a hello means that systemd
gave up the socket: the unit's set-up fails.
"""

import array
import asyncio
import errno
import json
import os
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

MOST = 64 * 1024  # bytes of a hello or error line; the launcher's error quotes argv's first word
_FLAGS = socket.MSG_CMSG_CLOEXEC
_CREDENTIALS = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid
_ROOM = socket.CMSG_SPACE(4 * array.array("i").itemsize) + socket.CMSG_SPACE(_CREDENTIALS.size)
_INVOCATION = re.compile(r"[0-9a-f]{32}")


class HandoverError(Exception):
    """No pipes came. Nothing is left open."""


class NotListeningError(HandoverError):
    """Nobody listens on the socket: it is stopped, failed, masked, or was never made."""


class GivenUpError(HandoverError):
    """The connection ended without a word: the unit could not be set up."""


class LaunchError(HandoverError):
    """The launcher's own words: the server's program could not be executed."""


@dataclass(slots=True)
class Handed:
    """What the launcher has handed over; the descriptors belong to the caller."""

    invocation: str
    pid: int  # the launcher's, which is the server's after exec; told by the kernel
    stdin_fd: int
    stdout_fd: int

    def close(self) -> None:
        os.close(self.stdin_fd)
        os.close(self.stdout_fd)


async def fetch(path: Path) -> Handed:
    """Connect and take the pipes; not bounded beyond the caller's own deadline.

    Raises:
        HandoverError: there are none.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            # A Unix socket connects at once or not at all (unix(7), EAGAIN: the backlog is full).
            connection.connect(os.fspath(path))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ECONNREFUSED):
                raise NotListeningError(f"{path}: {error.strerror}") from None
            raise HandoverError(f"{path}: {error.strerror}") from None
        return await _Reading(connection).whole()


@dataclass(slots=True)
class _Reading:
    connection: socket.socket
    said: bytes = b""
    pid: int = 0
    descriptors: list[int] = field(default_factory=list)

    async def whole(self) -> Handed:
        try:
            while not await self._ended():
                pass
            return self._handed()
        except BaseException:
            for descriptor in self.descriptors:
                os.close(descriptor)
            raise

    async def _ended(self) -> bool:
        """Read once more; whether that was the end."""
        await _readable(self.connection)
        try:
            data, ancillary, flags, _ = self.connection.recvmsg(4096, _ROOM, _FLAGS)
        except (BlockingIOError, InterruptedError):
            return False
        except ConnectionError:
            return True
        for level, kind, value in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self.descriptors += _integers(value)
            elif (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS) and not self.pid:
                self.pid, _, _ = _CREDENTIALS.unpack(value[: _CREDENTIALS.size])
        self.said += data
        if flags & socket.MSG_CTRUNC or len(self.said) > MOST or len(self.descriptors) > 2:
            raise HandoverError("the launcher says what it never says")
        return not data

    def _handed(self) -> Handed:
        if not self.said:
            raise GivenUpError("the unit was given up before it ran")
        first, *others = self.said.splitlines()
        with suppress(ValueError, LookupError, TypeError, AttributeError):
            if others:
                raise LaunchError(str(json.loads(others[0])["error"]))
            invocation = json.loads(first)["invocation"]
            if _INVOCATION.fullmatch(invocation) and len(self.descriptors) == 2 and self.pid > 0:
                return Handed(invocation, self.pid, *self.descriptors)
        raise HandoverError("the launcher's words are none")


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(connection, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(connection)


def _integers(value: bytes) -> Iterator[int]:
    found = array.array("i")
    found.frombytes(value[: len(value) - len(value) % found.itemsize])
    return iter(found)
