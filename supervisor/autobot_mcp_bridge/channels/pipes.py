"""A server's stdin and stdout on the event loop: reading never stops, writing has a bound."""

import asyncio
import os
import socket
import stat
from collections.abc import Callable


class _Stdout(asyncio.Protocol):
    def __init__(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._on_data = on_data
        self._on_end = on_end

    def data_received(self, data: bytes) -> None:
        self._on_data(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._on_end()


class _Stdin(asyncio.BaseProtocol):
    def __init__(self, on_deaf: Callable[[], None]) -> None:
        self._on_deaf = on_deaf

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._on_deaf()


class Pipes:
    """Owns the proxy's ends of a server's stdin and stdout and closes each exactly once."""

    def __init__(
        self, reader: asyncio.ReadTransport, writer: asyncio.WriteTransport, *, duplex: bool
    ) -> None:
        self._duplex = duplex
        self._reader = reader
        self._writer = writer
        self._stdin_closed = False

    @classmethod
    async def open(
        cls,
        stdin_fd: int,
        stdout_fd: int,
        *,
        on_data: Callable[[bytes], None],
        on_end: Callable[[], None],
        on_deaf: Callable[[], None],
    ) -> "Pipes":
        """Put both descriptors onto the running loop; they belong to the Pipes from here on.

        They are two pipes, or two descriptors of one socket. `on_end` is called once, when stdout
        has ended; `on_deaf` once when the loop sees that a pipe can take nothing more: the server
        has closed it or is gone, or we have closed it. Either may come first.
        """
        loop = asyncio.get_running_loop()
        if stat.S_ISSOCK(os.fstat(stdin_fd).st_mode):
            # asyncio takes whatever arrives at a pipe for writing as its end.
            os.close(stdout_fd)
            both, _ = await loop.connect_accepted_socket(
                lambda: _Stdout(on_data, on_end), socket.socket(fileno=stdin_fd)
            )
            return cls(both, both, duplex=True)
        # uvloop closes the descriptor by itself and then what it was given: between the two another
        # thread may have got the number, and would lose what it has just opened.
        closes = isinstance(loop, asyncio.BaseEventLoop)
        stdin = os.fdopen(stdin_fd, "wb", 0, closefd=closes)
        stdout = os.fdopen(stdout_fd, "rb", 0, closefd=closes)
        writer, _ = await loop.connect_write_pipe(lambda: _Stdin(on_deaf), stdin)
        reader, _ = await loop.connect_read_pipe(lambda: _Stdout(on_data, on_end), stdout)
        return cls(reader, writer, duplex=False)

    def write(self, line: bytes) -> None:
        """Hand a line over; only while `writable`."""
        self._writer.write(line)

    @property
    def writable(self) -> bool:
        """Whether stdin is open, as far as the loop has noticed (B8)."""
        return not self._stdin_closed and not self._writer.is_closing()

    @property
    def waiting(self) -> int:
        """Bytes that the server has not taken yet."""
        return self._writer.get_write_buffer_size()

    def pause(self) -> None:
        """Read no more: what the server writes from now on stays in the pipe."""
        self._reader.pause_reading()

    def resume(self) -> None:
        """Read on."""
        self._reader.resume_reading()

    def close_stdin(self) -> None:
        """Close the server's stdin once what waits has been written: the polite request to end."""
        if not self.writable:
            return
        self._stdin_closed = True
        if self._duplex:
            self._writer.write_eof()
        else:
            self._writer.close()

    def close(self) -> None:
        """Close both ends at once; idempotent."""
        # asyncio's pipe may not be aborted once it has been closed and written empty.
        if not self._writer.is_closing() or self._writer.get_write_buffer_size():
            self._writer.abort()
        self._stdin_closed = True
        self._reader.close()
