"""Listening sockets that are handed over, each from within one server's network namespace.

Which server a connection is from is told by the socket that it came in on: nothing that a server
sends counts. The sockets belong to systemd, which hands them over again after every restart.
"""

import asyncio
import logging
import os
import socket
import stat
import struct
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from autobot_mcp_bridge.model.names import parse_instance

# As egress/hand.py says them.
HAND, RELEASE = "hand", "release"
MOST = 256  # bytes of a message: a word and an instance's name
# Accepting goes on after so many seconds when there is no descriptor or memory left (accept(2)).
PAUSE = 0.5
# Connections of one server that are accepted before others get their turn.
AT_ONCE = 16
_CREDENTIALS = struct.Struct("3i")  # struct ucred, unix(7): pid, uid, gid

Serve = Callable[[str, socket.socket], Awaitable[None]]

log = logging.getLogger(__name__)


class Listeners:
    """Accepts on whatever was handed over last for each server."""

    def __init__(self, serve: Serve, tasks: asyncio.TaskGroup) -> None:
        self._serve = serve
        self._tasks = tasks
        self._listeners: dict[str, socket.socket] = {}
        self._connections: set[asyncio.Task[None]] = set()

    def take(self, hands: socket.socket) -> None:
        """Read one message: `hand INSTANCE` with a listening socket, or `release INSTANCE`."""
        space = socket.CMSG_SPACE(4) + socket.CMSG_SPACE(_CREDENTIALS.size)
        try:
            data, ancillary, _, _ = hands.recvmsg(MOST, space, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        descriptors: list[int] = []
        sender = -1
        for level, kind, value in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors += struct.unpack(f"{len(value) // 4}i", value[: len(value) // 4 * 4])
            elif (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                sender = _CREDENTIALS.unpack(value)[1]
        with ExitStack() as held:
            for descriptor in descriptors:
                held.callback(os.close, descriptor)
            try:
                self._understand(data, sender, descriptors)
            except (ValueError, OSError) as error:
                log.warning("what was handed over is not taken: %s", error)

    def _understand(self, data: bytes, sender: int, descriptors: list[int]) -> None:
        if sender not in {0, os.geteuid()}:
            raise ValueError(f"uid {sender} sent it")
        word, _, name = data.decode("ascii", "replace").partition(" ")
        instance = parse_instance(name).instance
        if word not in {HAND, RELEASE} or len(descriptors) != (word == HAND):
            raise ValueError(f"{word!r} with {len(descriptors)} descriptors")
        # What is of no use takes nothing away from a server that has one.
        own = _listening(instance, descriptors[0]) if word == HAND else None
        self._drop(instance)
        if own is not None:
            self._listeners[instance] = own
            self._listen(instance, own)

    def _listen(self, instance: str, listener: socket.socket) -> None:
        if self._listeners.get(instance) is listener:
            asyncio.get_running_loop().add_reader(listener, self._accept, instance, listener)

    def _accept(self, instance: str, listener: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                client, _ = listener.accept()
            except (BlockingIOError, ConnectionError):
                return
            except OSError as error:
                log.warning("%s: cannot accept: %s", instance, error.strerror)
                loop = asyncio.get_running_loop()
                loop.remove_reader(listener)
                loop.call_later(PAUSE, self._listen, instance, listener)
                return
            client.setblocking(False)
            task = self._tasks.create_task(self._served(instance, client))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

    async def _served(self, instance: str, client: socket.socket) -> None:
        try:
            await self._serve(instance, client)
        except Exception:
            # One connection's trouble is not the others'.
            log.exception("%s: a connection failed", instance, extra={"MCP_INSTANCE": instance})
        finally:
            client.close()

    def _drop(self, instance: str) -> None:
        """Let go of a listener. What came in on it goes on, until the server's process has ended.

        Not shutdown(2): systemd holds the same socket, and would take it for broken.
        """
        if (listener := self._listeners.pop(instance, None)) is not None:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()

    def close(self) -> None:
        """Accept nothing any more, and end all connections."""
        for instance in [*self._listeners]:
            self._drop(instance)
        for task in self._connections:
            task.cancel()


def _listening(instance: str, descriptor: int) -> socket.socket:
    """A socket of our own for it.

    Raises:
        ValueError: it is none that listens.
    """
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        raise ValueError(f"what is handed over for {instance} is no socket")
    own = socket.socket(fileno=os.dup(descriptor))
    try:
        if not own.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise ValueError(f"the socket of {instance} does not listen")
        own.setblocking(False)
    except BaseException:
        own.close()
        raise
    return own


def hands_socket(path: Path) -> socket.socket:
    """Where sockets are handed over: for this user and root alone.

    Raises:
        OSError: it cannot be made.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with suppress(FileNotFoundError):
            path.unlink()
        before = os.umask(0o177)
        try:
            made.bind(os.fspath(path))
        finally:
            os.umask(before)
    except BaseException:
        made.close()
        raise
    return made
