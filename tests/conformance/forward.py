"""A loopback forwarder that adds request headers, for a program that cannot send its own.

One request per connection, and bytes from there on: a stream stays a stream, and a client that
goes away takes the connection to the server with it. Host and Origin that name the forwarder become
the server's; any other passes as it is, so that a foreign one still reaches the server.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

from support.wire import Dial

HEAD_LIMIT = 256 << 10  # bytes of a head
CONNECT_TIMEOUT = 10.0  # seconds
PIECE = 64 << 10  # bytes
HOP = {"connection", "keep-alive", "proxy-connection"}
Pairs = list[tuple[str, str]]


async def read_head(reader: asyncio.StreamReader) -> tuple[str, Pairs]:
    raw = await reader.readuntil(b"\r\n\r\n")
    first, *lines = raw[:-4].decode("latin-1").split("\r\n")
    pairs = [line.partition(":") for line in lines]
    return first, [(name, value.strip()) for name, _, value in pairs]


def write_head(writer: asyncio.StreamWriter, first: str, headers: Pairs) -> None:
    kept = [(name, value) for name, value in headers if name.lower() not in HOP]
    lines = [first, *(f"{name}: {value}" for name, value in kept), "Connection: close", "", ""]
    writer.write("\r\n".join(lines).encode("latin-1"))


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()


class Forwarder:
    """`async with Forwarder(url, headers) as forwarder`: `forwarder.url` is url with the headers.

    Args:
        dial: makes sockets in the network in which the url means something.
    """

    def __init__(self, url: str, headers: Mapping[str, str], dial: Dial | None = None) -> None:
        self._parts = urlsplit(url)
        self._headers = dict(headers)
        self._dial = dial
        self._own: set[str] = set()
        self._open: set[asyncio.Task[None]] = set()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_LIMIT)
        port = self._server.sockets[0].getsockname()[1]
        self._own = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.url = f"http://127.0.0.1:{port}{self._parts.path}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            with suppress(OSError, EOFError, asyncio.LimitOverrunError, TimeoutError):
                await self._forward(reader, writer)
        except asyncio.CancelledError:
            pass  # asyncio's own callback for this task would tell of it
        finally:
            writer.close()
            self._open.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, headers = await read_head(reader)
        up_reader, up_writer = await self._connect()
        try:
            write_head(up_writer, first, self._changed(headers))
            ways = {
                asyncio.create_task(pump(reader, up_writer)),
                asyncio.create_task(self._respond(up_reader, writer)),
            }
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            up_writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = (self._parts.hostname, self._parts.port)
        async with asyncio.timeout(CONNECT_TIMEOUT):
            if self._dial is None:
                return await asyncio.open_connection(*address, limit=HEAD_LIMIT)
            made = self._dial()
            await asyncio.get_running_loop().sock_connect(made, address)
            return await asyncio.open_connection(sock=made, limit=HEAD_LIMIT)

    def _changed(self, headers: Pairs) -> Pairs:
        netloc = self._parts.netloc
        found = []
        for name, value in headers:
            if name.lower() == "host" and value in self._own:
                found.append((name, netloc))
            elif name.lower() == "origin" and value.removeprefix("http://") in self._own:
                found.append((name, f"http://{netloc}"))
            else:
                found.append((name, value))
        sent = {name.lower() for name, _ in found}
        return found + [(n, v) for n, v in self._headers.items() if n.lower() not in sent]

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, headers = await read_head(reader)
        write_head(writer, first, headers)
        await writer.drain()
        await pump(reader, writer)
