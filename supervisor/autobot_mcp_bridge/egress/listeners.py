"""Listening sockets that are handed over, each from within one server's network namespace.

Which server a connection is from is told by the socket that it came in on: nothing that a server
sends counts. The sockets belong to systemd, which hands them over again after every restart.
"""

import asyncio
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from autobot_mcp_bridge.model.names import parse_instance

# As egress/hand.py says them.
HAND, RELEASE = "hand", "release"
MOST = 256  # bytes of a message: a word and an instance's name
# Accepting goes on after so many seconds when there is no descriptor or memory left (accept(2)).
PAUSE = 0.5
_CREDENTIALS = struct.Struct("3i")  # struct ucred, unix(7): pid, uid, gid

Serve = Callable[[str, socket.socket], Awaitable[None]]

log = logging.getLogger(__name__)


class Listeners:
    """Accepts on whatever was handed over last for each server."""

    def __init__(self, serve: Serve, tasks: asyncio.TaskGroup) -> None:
        self._serve = serve
        self._tasks = tasks
        self._accepting: dict[str, asyncio.Task[None]] = {}

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
        sockets = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        try:
            self._understand(data, sender, sockets)
        except ValueError as error:
            log.warning("what was handed over is not taken: %s", error)
        finally:
            for one in sockets:
                one.close()

    def _understand(self, data: bytes, sender: int, sockets: list[socket.socket]) -> None:
        if sender not in {0, os.geteuid()}:
            raise ValueError(f"uid {sender} sent it")
        word, _, name = data.decode("ascii", "replace").partition(" ")
        instance = parse_instance(name).instance
        if word not in {HAND, RELEASE} or len(sockets) != (word == HAND):
            raise ValueError(f"{word!r} with {len(sockets)} descriptors")
        self._drop(instance)
        if word == HAND:
            own = sockets.pop()
            if not own.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                own.close()
                raise ValueError(f"the socket of {instance} does not listen")
            own.setblocking(False)
            task = self._tasks.create_task(self._accept(instance, own), name=f"accept {instance}")
            self._accepting[instance] = task

    def _drop(self, instance: str) -> None:
        """Let go of the older namespace, in which no process is any more."""
        if (task := self._accepting.pop(instance, None)) is not None:
            task.cancel()

    def close(self) -> None:
        for instance in [*self._accepting]:
            self._drop(instance)

    async def _accept(self, instance: str, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        # Not shutdown(2): systemd holds the same socket, and would take it for broken.
        with listener:
            async with asyncio.TaskGroup() as connections:
                while True:
                    try:
                        client, _ = await loop.sock_accept(listener)
                    except ConnectionError:
                        continue  # it went before it was accepted
                    except OSError as error:
                        log.warning("%s: cannot accept: %s", instance, error.strerror)
                        await asyncio.sleep(PAUSE)
                        continue
                    connections.create_task(self._served(instance, client))

    async def _served(self, instance: str, client: socket.socket) -> None:
        try:
            await self._serve(instance, client)
        except Exception:
            # One connection's trouble is not the others'.
            log.exception("%s: a connection failed", instance, extra={"MCP_INSTANCE": instance})
        finally:
            client.close()


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
