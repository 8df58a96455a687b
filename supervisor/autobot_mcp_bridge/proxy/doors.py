"""TLS handshakes of clients: each bounded in time, each a connection to be counted."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, cast

from autobot_mcp_bridge.proxy.tls import Tls

# Seconds from a connection to the end of its handshake.
HANDSHAKE = 10.0
# Bytes of an answer that wait to be encrypted before its writer is told to wait: as without TLS.
HIGH_WATER = 64 * 1024
_SAYS = b"this port speaks HTTPS, not HTTP\n"
PLAIN = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_SAYS), _SAYS)
)

log = logging.getLogger(__name__)


class Door(asyncio.Protocol):
    """A connection that is in its handshake; then it belongs to the protocol that speaks HTTP."""

    def __init__(
        self,
        tls: Tls,
        make: Callable[[], asyncio.Protocol],
        patience: float,
        opened: Callable[["Door"], None],
        closed: Callable[["Door"], None],
    ) -> None:
        """Hand over to what `make` makes.

        Args:
            tls: the certificate in force.
            make: the protocol for what is decrypted.
            patience: seconds that a closed connection has for what still waits to be encrypted.
            opened: hears of the beginning of the handshake.
            closed: hears of its end, before `make` is called; twice does no harm.
        """
        self._tls = tls
        self._make = make
        self._patience = patience
        self._opened = opened
        self._closed = closed
        self._early = _Early()
        self._raw: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        raw = cast("asyncio.Transport", transport)
        # What comes is for TLS to read, which takes the transport over in the task.
        raw.pause_reading()
        self._raw = raw
        self._task = asyncio.create_task(self._shake(raw), name="handshake")
        self._task.add_done_callback(self._over)
        self._opened(self)

    def force_close(self) -> None:
        """Give the handshake up."""
        if self._task is not None:
            self._task.cancel()

    def _over(self, task: asyncio.Task[None]) -> None:
        self._closed(self)
        if self._raw is not None:
            self._raw.abort()
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("fault in a handshake", exc_info=fault)

    async def _shake(self, raw: asyncio.Transport) -> None:
        # A descriptor of its own outlives the transport, which asyncio closes at the first mistake.
        with socket.socket(fileno=os.dup(raw.get_extra_info("socket").fileno())) as answer:
            try:
                async with asyncio.timeout(HANDSHAKE):
                    await self._tls.ready.wait()
                    encrypted = await asyncio.get_running_loop().start_tls(
                        raw,
                        self._early,
                        self._tls.context,
                        server_side=True,
                        ssl_handshake_timeout=HANDSHAKE,
                        ssl_shutdown_timeout=self._patience,
                    )
            except (OSError, TimeoutError) as error:  # a stranger's, as ssl.SSLError is one
                log.debug("handshake: %s", error or "it took too long")
                if getattr(error, "reason", "") == "HTTP_REQUEST":
                    with suppress(OSError):
                        answer.send(PLAIN)
                        answer.shutdown(socket.SHUT_WR)
                return
        if encrypted is None:  # the client has gone
            return
        self._raw = None
        self._closed(self)
        encrypted.set_write_buffer_limits(high=HIGH_WATER)
        self._early.hand_on(Encrypted(encrypted, raw), self._make())


class _Early(asyncio.Protocol):
    """Holds what the client sends with the end of its handshake, before anybody can be given it."""

    def __init__(self) -> None:
        self._data: list[bytes] = []
        self._eof = self._lost = False
        self._error: Exception | None = None

    def data_received(self, data: bytes) -> None:
        self._data.append(data)

    def eof_received(self) -> None:
        self._eof = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost, self._error = True, exc

    def hand_on(self, transport: "Encrypted", protocol: asyncio.Protocol) -> None:
        if self._lost:
            return
        protocol.connection_made(transport)
        transport.set_protocol(protocol)
        for data in self._data:
            protocol.data_received(data)
        if self._eof:
            protocol.eof_received()


class Encrypted(asyncio.Transport):
    """A transport with TLS, which knows of all bytes that wait.

    asyncio's tells of those that wait to be encrypted only, and has the rest wait, however much it
    is, in the transport below it.
    """

    def __init__(self, tls: asyncio.Transport, raw: asyncio.Transport) -> None:
        super().__init__()
        self._tls = tls
        self._raw = raw

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._tls.write(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        # One record for a head with its body, and not one for each.
        self._tls.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        self._tls.write_eof()

    def can_write_eof(self) -> bool:
        return self._tls.can_write_eof()

    def get_write_buffer_size(self) -> int:
        return self._tls.get_write_buffer_size() + self._raw.get_write_buffer_size()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._tls.get_write_buffer_limits()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._tls.set_write_buffer_limits(high, low)

    def close(self) -> None:
        """Say close_notify, and do not wait for the client's (RFC 8446 section 6.1)."""
        self._tls.close()
        if not self._tls.get_write_buffer_size():
            self._raw.close()

    def abort(self) -> None:
        self._tls.abort()

    def is_closing(self) -> bool:
        return self._tls.is_closing()

    def pause_reading(self) -> None:
        self._tls.pause_reading()

    def resume_reading(self) -> None:
        self._tls.resume_reading()

    def is_reading(self) -> bool:
        return self._tls.is_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._tls.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._tls.get_protocol()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._tls.get_extra_info(name, default)
