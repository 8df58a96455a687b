"""A relay before the proxy that cuts connections in the midst of an answer."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

CHUNK = 1 << 16


class CuttingRelay:
    """Passes bytes on, and cuts each of the first connections that carry so many marks.

    Args:
        url: where to.
        mark: bytes of an answer that are counted.
        every: marks on one connection after which it is cut.
        most: connections that are cut; later ones are passed on to their end.
    """

    def __init__(self, url: str, mark: bytes, *, every: int, most: int) -> None:
        self._parts = urlsplit(url)
        self._mark = mark
        self._every = every
        self._most = most
        self.cuts = 0
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}{self._parts.path}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            behind, before = await asyncio.open_connection(self._parts.hostname, self._parts.port)
            ends.append(before)
            ways = [
                asyncio.create_task(self._pass(reader, before)),
                asyncio.create_task(self._pass(behind, writer, counted=True)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in ends:
                each.transport.abort()
        await asyncio.gather(*ways)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool = False
    ) -> None:
        seen = 0
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK):
                writer.write(data)
                await writer.drain()
                seen += data.count(self._mark)
                if counted and seen >= self._every and self.cuts < self._most:
                    self.cuts += 1
                    return
