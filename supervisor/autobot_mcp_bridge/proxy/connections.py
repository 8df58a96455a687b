"""Connections as strangers open them: so many at once, none for ever."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

from aiohttp import web

from autobot_mcp_bridge.model.errors import UNAVAILABLE
from autobot_mcp_bridge.model.host import HostLimits
from autobot_mcp_bridge.proxy.doors import Door, Handshake
from autobot_mcp_bridge.proxy.replies import error_reply
from autobot_mcp_bridge.proxy.streams import ANSWER_HEADERS
from autobot_mcp_bridge.proxy.tls import Tls

# Bounds of aiohttp's own parser; the endpoint's limits lie below them.
MAX_FIELD = 64 * 1024
# Bytes of answers that wait for their clients to read them, and from which size an answer is asked
# whether it still fits. Each is held up to three times as long as it is being written (measured).
MOST_UNSENT = 128 << 20
LARGE = 256 * 1024
# Who had an answer so lately, in seconds, is likely to be sending the next request already.
LATELY = 1.0

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Server(web.Server):
    """aiohttp's server, bounded by host.toml's [limits].

    One connection more than `connections` closes the oldest other one that is in its TLS handshake,
    else the oldest that has no request; if all have one, itself. One without a whole request head
    for `connection_idle` is closed by aiohttp. One whose peer takes nothing of an answer for
    `write_timeout` is closed by the kernel (TCP_USER_TIMEOUT, tcp(7), which counts while the peer's
    window is shut): that needs no timer around each write.
    """

    def __init__(self, handler: Handler, limits: HostLimits, tls: Tls | None = None) -> None:
        super().__init__(
            self._handle,
            access_log=None,
            auto_decompress=False,
            handler_cancellation=True,  # a client that goes is noticed at once (E14)
            keepalive_timeout=limits.connection_idle,
            max_field_size=MAX_FIELD,
            max_line_size=MAX_FIELD,
        )
        self._answer = handler
        self._limit = limits.connections
        self._write_timeout = round(limits.write_timeout * 1000)
        self._busy: set[object] = set()
        self._answered: dict[object, float] = {}  # when each connection had its last answer
        self._tls = tls
        self._doors: dict[Door, None] = {}
        self._leaving = False
        self._quiet = asyncio.Event()

    def __call__(self) -> asyncio.BaseProtocol:  # type: ignore[override]
        """The protocol of one more connection."""
        if self._tls is None:
            return super().__call__()
        door = Door(super().__call__, self._closed)
        self._doors[door] = None
        self._make_room(door)
        return Handshake(self._tls, door, self._write_timeout / 1000)

    def _closed(self, door: Door) -> None:
        self._doors.pop(door, None)

    def pre_shutdown(self) -> None:
        for door in tuple(self._doors):
            door.force_close()
        super().pre_shutdown()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        self._busy.add(connection)
        try:
            response = await self._answer(request)
            body = response.body if isinstance(response, web.Response) else None
            size = len(body) if isinstance(body, bytes) else 0
            if size > LARGE and self._too_much_waits(size):
                text = "too many large answers wait for clients that do not read them"
                response = error_reply(503, UNAVAILABLE, text)
                response.headers["Retry-After"] = "1"
                response.headers.update(request.get(ANSWER_HEADERS, {}))
            if self._leaving:
                response.force_close()
            return response
        finally:
            self._busy.discard(connection)
            if connection.transport is not None:  # not lost meanwhile
                self._answered[connection] = self._loop.time()
            if self._leaving and not self._busy:
                self._quiet.set()

    async def leave(self, notice: float, patience: float) -> None:
        """Say `Connection: close` with each answer, and wait until no request is open.

        Args:
            notice: seconds at most for those who send one request after the other to hear of it:
                whoever is just sending cannot know of a connection that is closed without a word.
            patience: seconds at most after that for open requests.
        """
        self._leaving = True
        since = self._loop.time() - LATELY
        active = {connection for connection, at in self._answered.items() if at > since}
        with suppress(TimeoutError):
            async with asyncio.timeout(notice):
                await self._until(lambda: active.isdisjoint(self._answered))
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._until(lambda: not self._busy)

    async def _until(self, quiet: Callable[[], bool]) -> None:
        while not quiet():
            self._quiet.clear()
            await self._quiet.wait()

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        self._answered.pop(handler, None)
        self._quiet.set()

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        peer = transport.get_extra_info("socket")
        if peer.family != socket.AF_UNIX:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self._write_timeout)
        self._make_room(handler)

    def _make_room(self, newest: web.RequestHandler | Door) -> None:
        if len(self.connections) + len(self._doors) > self._limit:
            next(self._spare(newest), newest).force_close()

    def _spare(self, newest: web.RequestHandler | Door) -> Iterator[web.RequestHandler | Door]:
        yield from (door for door in self._doors if door is not newest)
        yield from filter(self._idle, self.connections)

    def _too_much_waits(self, size: int) -> bool:
        waiting = sum(map(_unsent, self.connections))
        return bool(waiting) and waiting + size > MOST_UNSENT

    def _idle(self, connection: web.RequestHandler) -> bool:
        return connection not in self._busy and not _unsent(connection)


def _unsent(connection: web.RequestHandler) -> int:
    transport = connection.transport
    return transport.get_write_buffer_size() if transport is not None else 0
