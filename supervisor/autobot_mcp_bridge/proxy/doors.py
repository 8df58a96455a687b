"""TLS handshakes of clients: each bounded in time, each a connection to be counted."""

import asyncio
import logging
import os
import socket
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, cast

from autobot_mcp_bridge.proxy.tls import Tls

# Seconds from a connection to the end of its handshake.
HANDSHAKE = 10
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
        self, make: Callable[[], asyncio.Protocol], closed: Callable[["Door"], None]
    ) -> None:
        """Hand over to what `make` makes.

        Args:
            make: the protocol for what is decrypted.
            closed: hears of the end of the handshake, before `make` is called; twice does no harm.
        """
        self._make = make
        self._closed = closed
        self._refused = False
        self._raw: asyncio.Transport | None = None
        self._answer: socket.socket | None = None

    def began(self, raw: asyncio.Transport) -> None:
        self._raw = raw
        # A descriptor of its own outlives the transport, which asyncio closes at the first mistake.
        self._answer = socket.socket(fileno=os.dup(raw.get_extra_info("socket").fileno()))
        if self._refused:
            raw.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is done."""
        self._closed(self)
        tls, raw = cast("asyncio.Transport", transport), cast("asyncio.Transport", self._raw)
        self._raw = None
        tls.set_write_buffer_limits(high=HIGH_WATER)
        protocol = self._make()
        protocol.connection_made(Encrypted(tls, raw))
        tls.set_protocol(protocol)

    def force_close(self) -> None:
        """Give the handshake up; before it has begun, too."""
        self._refused = True
        self._closed(self)
        if self._raw is not None:
            self._raw.abort()

    def over(self, shaken: asyncio.Future[None]) -> None:
        """It is, well or not."""
        self._closed(self)
        error = None if shaken.cancelled() else shaken.exception()
        if error is not None:
            log.debug("handshake: %s", error)
        if self._answer is None:
            return
        with self._answer as answer:
            if getattr(error, "reason", "") == "HTTP_REQUEST":
                with suppress(OSError):
                    answer.send(PLAIN)
                    answer.shutdown(socket.SHUT_WR)


class Handshake(SSLProtocol):
    """asyncio's own TLS, which its servers use; uvloop's would not tell of the transport below it."""

    def __init__(self, tls: Tls, door: Door, patience: float) -> None:
        """Begin with the certificate in force.

        Args:
            tls: has it.
            door: hears of the handshake.
            patience: seconds that a closed connection has for what still waits to be encrypted.
        """
        loop = asyncio.get_running_loop()
        shaken: asyncio.Future[None] = loop.create_future()
        shaken.add_done_callback(door.over)
        super().__init__(
            loop,
            door,
            tls.context,
            shaken,
            server_side=True,
            ssl_handshake_timeout=HANDSHAKE,
            ssl_shutdown_timeout=patience,
        )
        self.door = door

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.door.began(cast("asyncio.Transport", transport))
        super().connection_made(transport)


class Encrypted(asyncio.Transport):
    """A transport with TLS, which knows of all bytes that wait.

    asyncio's tells of those that wait to be encrypted only, and has the rest wait, however much it
    is, in the transport below it.
    """

    def __init__(self, tls: asyncio.Transport, raw: asyncio.Transport) -> None:
        super().__init__()
        self._tls = tls
        self._raw = raw
        self._closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._tls.write(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self._tls.writelines(list_of_data)

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
        if self._closed:
            return
        self._closed = True
        waits = self._tls.get_write_buffer_size()
        self._tls.close()
        if not waits:
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
