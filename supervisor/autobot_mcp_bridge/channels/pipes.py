"""A server's two pipes on the event loop: reading never stops, writing has a bound."""

import asyncio
import os
from collections.abc import Callable


class _Reader(asyncio.Protocol):
    def __init__(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._on_data = on_data
        self._on_end = on_end

    def data_received(self, data: bytes) -> None:
        self._on_data(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._on_end()


class _Writer(asyncio.BaseProtocol):
    def connection_lost(self, exc: Exception | None) -> None:
        # The server closed its stdin or is gone; the end of its stdout tells the rest (B8).
        pass


class Pipes:
    """Owns the proxy's ends of a server's stdin and stdout and closes each exactly once."""

    def __init__(self, reader: asyncio.ReadTransport, writer: asyncio.WriteTransport) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(
        cls,
        stdin_fd: int,
        stdout_fd: int,
        *,
        on_data: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> "Pipes":
        """Put both descriptors onto the running loop; they belong to the Pipes from here on.

        `on_end` is called once, when stdout has ended.
        """
        loop = asyncio.get_running_loop()
        stdin = os.fdopen(stdin_fd, "wb", 0)
        stdout = os.fdopen(stdout_fd, "rb", 0)
        writer, _ = await loop.connect_write_pipe(_Writer, stdin)
        reader, _ = await loop.connect_read_pipe(lambda: _Reader(on_data, on_end), stdout)
        return cls(reader, writer)

    def write(self, line: bytes) -> None:
        self._writer.write(line)

    @property
    def waiting(self) -> int:
        """Bytes that the server has not taken yet."""
        return self._writer.get_write_buffer_size()

    def close_stdin(self) -> None:
        """Close the server's stdin once what waits has been written: the polite request to end."""
        self._writer.close()

    def close(self) -> None:
        """Close both ends at once; idempotent."""
        # asyncio's pipe may not be aborted once it has been closed and written empty.
        if not self._writer.is_closing() or self._writer.get_write_buffer_size():
            self._writer.abort()
        self._reader.close()
