"""HTTP/1.1 by hand: what was sent and what came back stays visible to the byte."""

import asyncio
import ctypes
import json
import select
import socket
import ssl
import struct
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

from support.waiting import PATIENCE

WITHIN = 15.0 * PATIENCE  # seconds for one exchange
_LIMIT = 64 << 20  # longest line of an answer: 20 MiB answers are part of the tests
LITTLE = 1024  # the same for a client that takes as little as it can
# socket(7): a filter of the socket's own; this one, in classic BPF, drops every packet.
_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("=HBBI", 0x06, 0, 0, 0)
Dial = Callable[[], socket.socket]  # makes a socket that is not connected, and does not block
Headers = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The value of a header that came at most once."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(values) < 2, f"{name} came {len(values)} times"
        return values[0] if values else None

    @property
    def is_stream(self) -> bool:
        return (self.header("Content-Type") or "").startswith("text/event-stream")

    @property
    def messages(self) -> list[Any]:
        """Every JSON-RPC message of the body, JSON and SSE alike."""
        if not self.body:
            return []
        if self.is_stream:
            return [json.loads(data) for data in sse_data(self.body)]
        return [json.loads(self.body)]

    @property
    def comparable(self) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
        """Status, headers but Date in their order, and body: what a stranger can compare."""
        rest = tuple((k, v) for k, v in self.headers if k.lower() != "date")
        return self.status, rest, self.body


def sse_data(body: bytes) -> list[str]:
    """The data of each event that has any."""
    found = []
    for block in body.decode("utf-8").replace("\r\n", "\n").split("\n\n"):
        lines = [line[5:].removeprefix(" ") for line in block.split("\n") if line[:5] == "data:"]
        if data := "\n".join(lines):
            found.append(data)
    return found


class Stream:
    """A response whose body is read event by event."""

    def __init__(self, connection: "Connection", head: Response) -> None:
        self.status = head.status
        self.headers = head.headers
        self.header = head.header
        self._connection = connection
        self._chunked = (head.header("Transfer-Encoding") or "").lower() == "chunked"
        self._buffer = b""
        self.comments = 0
        self.last_id: str | None = None
        self.retry: int | None = None
        self.primers = 0  # events with an id and no data

    async def event(self, *, within: float = WITHIN) -> Any:
        """The next message; None at the stream's end."""
        async with asyncio.timeout(within):
            while (data := await self._block()) is not None:
                if data:
                    return json.loads(data[0])
            return None

    async def first_id(self, *, within: float = WITHIN) -> str:
        """The id of the first event, which need not have data."""
        async with asyncio.timeout(within):
            while self.last_id is None:
                assert await self._block() is not None, "the stream ended without an id"
        return self.last_id

    async def _block(self) -> list[str] | None:
        """The data of the next event, which may have none; None at the stream's end."""
        while True:
            head, separator, rest = self._buffer.partition(b"\n\n")
            if separator:
                self._buffer = rest
                data = sse_data(head + b"\n\n")
                self._note(head.decode("utf-8").split("\n"), data)
                return data
            piece = await self._connection.read_piece(chunked=self._chunked)
            if not piece:
                return None
            self._buffer += piece.replace(b"\r\n", b"\n")

    async def piece(self) -> bytes:
        """The next bytes as they come, for who reads no events; empty at the stream's end."""
        return await self._connection.read_piece(chunked=self._chunked)

    def _note(self, lines: list[str], data: list[str]) -> None:
        for line in lines:
            name, _, value = line.partition(":")
            match name:
                case "":
                    self.comments += 1
                case "id":
                    self.last_id = value.strip()
                    self.primers += not data
                case "retry":
                    self.retry = int(value)

    async def until(self, method_or_id: object, *, within: float = WITHIN) -> Any:
        """The next message with this method or, for an answer, this id."""
        async with asyncio.timeout(within):
            while (message := await self.event(within=within)) is not None:
                if message.get("method", object()) == method_or_id or (
                    "method" not in message and message.get("id", object()) == method_or_id
                ):
                    return message
        raise AssertionError(f"the stream ended before {method_or_id!r}")

    @property
    def is_stream(self) -> bool:
        """Not a plain answer: one that came before any event."""
        return (self.header("Content-Type") or "").startswith("text/event-stream")

    async def json(self, *, within: float = WITHIN) -> Any:
        """The body of an answer that is no stream after all."""
        length = int(self.header("Content-Length") or 0)
        async with asyncio.timeout(within):
            return json.loads(await self._connection.read_exactly(length))

    async def close(self) -> None:
        await self._connection.close()

    def reset(self) -> None:
        self._connection.reset()

    def vanish(self) -> None:
        self._connection.vanish()


class Connection:
    """One keep-alive connection, used by one exchange at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.reusable = True

    @classmethod
    async def open(
        cls,
        url: str,
        dial: Dial | None = None,
        limit: int = _LIMIT,
        tls: ssl.SSLContext | None = None,
    ) -> Self:
        """Connect; by a socket of `dial`'s, where the address means something elsewhere only.

        Of what nobody asked for yet twice `limit` bytes are read.
        """
        parts = urlsplit(url)
        async with asyncio.timeout(WITHIN):
            if dial is not None:
                made = dial()
                try:
                    await asyncio.get_running_loop().sock_connect(
                        made, (parts.hostname, parts.port)
                    )
                    name = parts.hostname if tls is not None else None
                    opened = await asyncio.open_connection(
                        sock=made, limit=limit, ssl=tls, server_hostname=name
                    )
                    return cls(*opened)
                except BaseException:
                    made.close()
                    raise
            return cls(
                *await asyncio.open_connection(parts.hostname, parts.port, limit=limit, ssl=tls)
            )

    @classmethod
    async def open_unix(cls, path: str) -> Self:
        async with asyncio.timeout(WITHIN):
            return cls(*await asyncio.open_unix_connection(path, limit=_LIMIT))

    @property
    def certificate(self) -> bytes:
        """What the other side has shown, in DER."""
        shown: bytes = self._writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return shown

    @property
    def protocol(self) -> str | None:
        """What ALPN has agreed on."""
        agreed: str | None = self._writer.get_extra_info("ssl_object").selected_alpn_protocol()
        return agreed

    @property
    def tls_version(self) -> str:
        version: str = self._writer.get_extra_info("ssl_object").version()
        return version

    @property
    def ended(self) -> bool:
        """Whether the other side has closed it, even if the loop has not read that yet."""
        if self._reader.at_eof() or self._reader.exception() is not None:
            return True
        look = select.poll()
        look.register(self._writer.get_extra_info("socket").fileno(), select.POLLRDHUP)
        return bool(look.poll(0))

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def drain(self) -> None:
        await self._writer.drain()

    async def request(
        self, method: str, target: str, headers: Headers = (), body: bytes | None = None
    ) -> Response:
        """One exchange, its body read whole."""
        self.reusable = False
        self.send(encode(method, target, headers, body))
        await self.drain()
        head = await self.read_head()
        content = await self._read_body(method, head)
        close = (head.header("Connection") or "").lower() == "close"
        self.reusable = not close
        return Response(head.status, head.reason, head.headers, content)

    async def stream(
        self, method: str, target: str, headers: Headers = (), body: bytes | None = None
    ) -> Stream:
        self.reusable = False
        self.send(encode(method, target, headers, body))
        async with asyncio.timeout(WITHIN):
            await self.drain()
            return Stream(self, await self.read_head())

    async def read_head(self) -> Response:
        raw = await self._reader.readuntil(b"\r\n\r\n")
        first, *lines = raw.decode("latin-1").split("\r\n")[:-2]
        _, status, reason = (*first.split(" ", 2), "")[:3]
        pairs = tuple((k, v.strip()) for k, _, v in (line.partition(":") for line in lines))
        return Response(int(status), reason, pairs, b"")

    async def _read_body(self, method: str, head: Response) -> bytes:
        if method == "HEAD" or head.status in (204, 304):
            return b""
        length = head.header("Content-Length")
        if length is not None:
            return await self._reader.readexactly(int(length))
        if (head.header("Transfer-Encoding") or "").lower() == "chunked":
            pieces = []
            while piece := await self.read_piece(chunked=True):
                pieces.append(piece)
            return b"".join(pieces)
        return await self._reader.read()

    async def read_piece(self, *, chunked: bool) -> bytes:
        """The next piece of a body; empty at its end."""
        if not chunked:
            return await self._reader.read(1 << 16)
        line = await self._reader.readline()
        if not line:
            return b""
        piece = await self._reader.readexactly(int(line.split(b";")[0], 16))
        await self._reader.readexactly(2)
        return piece

    async def read_exactly(self, size: int) -> bytes:
        return await self._reader.readexactly(size)

    async def rest(self, *, within: float = WITHIN) -> bytes:
        """Everything up to the other side's close."""
        async with asyncio.timeout(within):
            with suppress(ConnectionError):
                return await self._reader.read()
        return b""

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError, TimeoutError, ssl.SSLError):
            async with asyncio.timeout(WITHIN):
                await self._writer.wait_closed()

    def half_close(self) -> None:
        """Send nothing more, and read on."""
        self._writer.write_eof()

    def reset(self) -> None:
        """End with RST instead of FIN."""
        raw: socket.socket = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def vanish(self) -> None:
        """Take no packet any more, as a host that was switched off: no FIN, no RST, no ACK."""
        raw: socket.socket = self._writer.get_extra_info("socket")
        program = ctypes.create_string_buffer(_DROP_ALL, len(_DROP_ALL))
        pointer = struct.pack("@HP", 1, ctypes.addressof(program))
        raw.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, pointer)


def encode(method: str, target: str, headers: Headers, body: bytes | None) -> bytes:
    """The request's bytes; Host and Content-Length are added unless they are given."""
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    names = {name.lower() for name, _ in pairs}
    if "host" not in names:
        pairs.insert(0, ("Host", "127.0.0.1"))
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        pairs.append(("Content-Length", str(len(body))))
    lines = [f"{method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in pairs)]
    return "\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + (body or b"")


async def exchange(
    url: str,
    method: str = "GET",
    headers: Headers = (),
    body: bytes | None = None,
    *,
    target: str | None = None,
    within: float = WITHIN,
) -> Response:
    """One request on a connection of its own."""
    parts = urlsplit(url)
    path = target or (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection = await Connection.open(url)
    try:
        async with asyncio.timeout(within):
            return await connection.request(method, path, headers, body)
    finally:
        await connection.close()


async def raw_exchange(url: str, data: bytes, *, within: float = WITHIN) -> bytes:
    """Send exactly these bytes and return everything that comes until the other side closes."""
    connection = await Connection.open(url)
    try:
        connection.send(data)
        return await connection.rest(within=within)
    finally:
        await connection.close()


def narrow_socket() -> socket.socket:
    """One that takes few bytes at a time, so that the kernel cannot take the answer."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.setblocking(False)
    return made


async def narrow(url: str, tls: ssl.SSLContext | None = None) -> Connection:
    """A connection by such a socket, which reads little that it is not asked for."""
    return await Connection.open(url, narrow_socket, limit=LITTLE, tls=tls)
