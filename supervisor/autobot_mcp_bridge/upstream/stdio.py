"""The program's stdin and stdout: one message a line, both bounded."""

import asyncio
import sys
from typing import IO

from autobot_mcp_bridge.upstream.endings import DATA, EndError


class Lines:
    """stdin, a line at a time; what nobody takes stays in the pipe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._reader = asyncio.StreamReader(limit=most)

    async def open(self, file: IO[bytes]) -> None:
        """Take over a pipe, a socket or a terminal.

        Raises:
            EndError: it is something else.
        """
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self._reader), file)
        except ValueError:
            raise EndError(DATA, "stdin: allowed is a pipe, a socket or a terminal") from None

    async def next(self) -> bytes | None:
        """The next line; None: the client has closed stdin.

        Raises:
            EndError: it is longer than it may be; where the next one begins is not known then.
        """
        try:
            return await self._reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as end:
            return end.partial or None
        except asyncio.LimitOverrunError:
            text = f"stdin: allowed are lines of at most {self._most} bytes"
            raise EndError(DATA, text) from None


class Output(asyncio.Protocol):
    """stdout: who writes waits while the client does not read; so does what comes from upstream.

    Attributes:
        closed: set when the client no longer reads.
    """

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self._flows = asyncio.Event()
        self._flows.set()
        self._transport: asyncio.WriteTransport | None = None

    async def open(self, file: IO[bytes]) -> None:
        """Take over a pipe, a socket or a terminal.

        Raises:
            EndError: it is something else.
        """
        try:
            self._transport, _ = await asyncio.get_running_loop().connect_write_pipe(
                lambda: self, file
            )
        except ValueError:
            raise EndError(DATA, "stdout: allowed is a pipe, a socket or a terminal") from None

    async def write(self, line: bytes) -> None:
        """Write one message; bounded by what the transport holds, 64 KiB and one message."""
        await self._flows.wait()
        if self._transport is not None and not self.closed.is_set():
            self._transport.write(line + b"\n")

    async def finish(self, within: float) -> None:
        """Wait at most so many seconds until the client has read all of it."""
        if self._transport is None or self.closed.is_set():
            return
        self._transport.close()
        try:
            async with asyncio.timeout(within):
                await self.closed.wait()
        except TimeoutError:
            self._transport.abort()

    def pause_writing(self) -> None:
        self._flows.clear()

    def resume_writing(self) -> None:
        self._flows.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc  # whatever it was, nobody reads any more
        self._flows.set()
        self.closed.set()


def tell(text: str) -> None:
    """One line on stderr: the log of a server, or of a desktop client."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    sys.stderr.write(f"mcp-bridge: {shown}\n")
    sys.stderr.flush()
