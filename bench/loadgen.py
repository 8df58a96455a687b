"""A lean load generator: HTTP/1.1 kept alive over asyncio streams, speaking MCP's POSTs.

Leaner than an HTTP library, so that on two cores the gateway and not the client is measured. Every
answer is checked: the id where it is JSON-RPC, the call's own nonce, and the whole length.

As a program it is the load of a neighbour, in a process of its own: the arguments of `neighbour`
as JSON on stdin, its summary as JSON on stdout.
"""

import asyncio
import itertools
import json
import math
import sys
import time
from dataclasses import asdict, dataclass, field
from urllib.parse import urlsplit

import orjson
import uvloop

CALL_TIMEOUT = 60  # seconds, of one HTTP exchange
CLOSE_TIMEOUT = 5  # seconds, of ending one session
PAUSE_AFTER_ERROR = 0.01  # seconds: a gateway that is down is not hammered
PARSED_BELOW = 4096  # bytes: larger answers are checked by nonce and length, which is cheaper
NONCE = 24  # characters
STREAM_LIMIT = 1 << 20
HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
counter = itertools.count(1)


class WrongAnswerError(Exception):
    """Not the answer to the call: an error, another's, or cut short."""


@dataclass(frozen=True)
class Endpoint:
    """Where one hosted server is called. Era: handshake, modern, or raw (no MCP before calls)."""

    url: str
    era: str = "handshake"
    headers: dict = field(default_factory=dict)
    tool: str = "echo"


def text_of(size):
    """A text of that size that begins with a nonce."""
    return f"n{next(counter):0{NONCE - 2}d}z".ljust(size, "p")


class Connection:
    def __init__(self, url):
        self.url = urlsplit(url)
        self.reader = self.writer = None

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None

    async def request(self, method, headers, body=b""):
        """One exchange: (status, headers, body)."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                return await self._request(method, headers, body)
        except BaseException:
            self.close()
            raise

    async def _request(self, method, headers, body):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(
                self.url.hostname, self.url.port, limit=STREAM_LIMIT
            )
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"{method} {self.url.path} HTTP/1.1\r\nHost: {self.url.netloc}\r\n{lines}"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        raw = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status_line, *fields = raw.split("\r\n")
        got = {}
        for line in filter(None, fields):
            name, _, value = line.partition(":")
            got[name.lower()] = value.strip()
        data = await self._body(got)
        if got.get("connection", "").lower() == "close":
            self.close()
        return int(status_line.split(" ", 2)[1]), got, data

    async def _body(self, headers):
        if headers.get("transfer-encoding", "").lower() == "chunked":
            parts = []
            while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                parts.append((await self.reader.readexactly(size + 2))[:-2])
            await self.reader.readuntil(b"\r\n")
            return b"".join(parts)
        return await self.reader.readexactly(int(headers.get("content-length", 0)))


def message_in(headers, body):
    """The JSON-RPC answer's bytes out of a JSON or an event-stream body."""
    if not headers.get("content-type", "").startswith("text/event-stream"):
        return body
    for event in body.replace(b"\r\n", b"\n").split(b"\n\n"):
        lines = (line[5:].lstrip() for line in event.split(b"\n") if line.startswith(b"data:"))
        data = b"\n".join(lines)
        if b'"result"' in data or b'"error"' in data:
            return data
    return b""


class Client:
    """One caller: a connection, and a session where the era has them."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.connection = Connection(endpoint.url)
        self.headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **endpoint.headers,
        }
        if endpoint.era == "modern":
            self.headers |= {
                "MCP-Protocol-Version": MODERN,
                "Mcp-Method": "tools/call",
                "Mcp-Name": endpoint.tool,
            }

    async def _post(self, message):
        status, headers, body = await self.connection.request(
            "POST", self.headers, orjson.dumps({"jsonrpc": "2.0", **message})
        )
        if status >= 300:
            raise WrongAnswerError(f"{status} {body[:200]!r}")
        return headers, message_in(headers, body)

    async def start(self):
        if self.endpoint.era != "handshake":
            return
        about = {"name": "bench", "version": "1"}
        params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": about}
        message = {"id": next(counter), "method": "initialize", "params": params}
        headers, body = await self._post(message)
        self.headers["MCP-Protocol-Version"] = orjson.loads(body)["result"]["protocolVersion"]
        if session := headers.get("mcp-session-id"):
            self.headers["Mcp-Session-Id"] = session
        await self._post({"method": "notifications/initialized"})

    async def stop(self):
        if "Mcp-Session-Id" in self.headers:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self.connection.request("DELETE", self.headers)
        self.connection.close()

    async def call(self, text, **more):
        """Call the echo tool.

        Raises:
            WrongAnswerError: the answer is not that of this call.
        """
        ident = next(counter)
        params = {"name": self.endpoint.tool, "arguments": {"text": text, **more}}
        if self.endpoint.era == "modern":
            params["_meta"] = META
        _, body = await self._post({"id": ident, "method": "tools/call", "params": params})
        right = text[:NONCE].encode() in body and len(body) > len(text) + more.get("size", 0)
        if right and len(body) < PARSED_BELOW:
            message = orjson.loads(body)
            right = message["id"] == ident and "error" not in message
        if not right:
            raise WrongAnswerError(repr(body[:200]))


def quantile(ordered, share):
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass
class Tally:
    """What calls came to: seconds each took, what went wrong, seconds in all."""

    taken: list = field(default_factory=list)
    errors: list = field(default_factory=list)
    wall: float = 0.0

    def summary(self):
        ordered = sorted(self.taken)
        row = {"calls": len(ordered), "errors": len(self.errors), "first_error": None}
        if self.errors:
            row["first_error"] = self.errors[0]
        row["per_second"] = round(len(ordered) / self.wall, 1)
        for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99)):
            row[name] = round(quantile(ordered, share) * 1000, 3) if ordered else None
        return row


async def load(clients, length, *, seconds=CALL_TIMEOUT, calls=math.inf, tally=None, **more):
    """Every client sends calls back to back, so long or so many; counted into the tally.

    `length` is that of the text in bytes; `more` are further arguments of the tool.
    """
    tally = tally or Tally()
    began, left = time.perf_counter(), calls

    async def caller(client):
        nonlocal left
        while left > 0 and (start := time.perf_counter()) < began + seconds:
            left -= 1
            try:
                await client.call(text_of(length), **more)
                tally.taken.append(time.perf_counter() - start)
            except (WrongAnswerError, OSError, TimeoutError, EOFError) as error:
                tally.errors.append(f"{type(error).__name__}: {error}"[:300])
                await asyncio.sleep(PAUSE_AFTER_ERROR)

    await asyncio.gather(*(caller(client) for client in clients))
    tally.wall += time.perf_counter() - began
    return tally


async def callers(endpoint, count):
    """So many started clients, each with a session of its own."""
    clients = [Client(endpoint) for _ in range(count)]
    await asyncio.gather(*(client.start() for client in clients))
    return clients


async def stop(clients):
    await asyncio.gather(*(client.stop() for client in clients))


async def neighbour(endpoint, count, seconds, more):
    clients = await callers(Endpoint(**endpoint), count)
    print("started", flush=True)
    tally = await load(clients, NONCE, seconds=seconds, **more)
    await stop(clients)
    return tally.summary()


class Neighbour:
    """A load in another process, so that its cost is not in the latency seen by this one."""

    def __init__(self, endpoint, count, seconds, **more):
        self.order = {
            "endpoint": asdict(endpoint),
            "count": count,
            "seconds": seconds,
            "more": more,
        }

    async def __aenter__(self):
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, stdin=pipe, stdout=pipe
        )
        self.process.stdin.write(json.dumps(self.order).encode())
        self.process.stdin.close()
        async with asyncio.timeout(CALL_TIMEOUT):
            await self.process.stdout.readline()
        return self

    async def __aexit__(self, *_):
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def summary(self):
        async with asyncio.timeout(self.order["seconds"] + CALL_TIMEOUT):
            return json.loads(await self.process.stdout.read())


if __name__ == "__main__":
    print(json.dumps(uvloop.run(neighbour(**json.load(sys.stdin)))))
