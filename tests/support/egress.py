"""An egress proxy's process, the sockets that it is handed, and clients that speak to it."""

import asyncio
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from autobot_mcp_bridge.egress import allowed, counts, hand
from support.waiting import PATIENCE, WITHIN, eventually

MAIN = Path(__file__).with_name("egress_main.py")


def client_hello(name: str, **options: Any) -> bytes:
    """What OpenSSL sends first to a server of this name; options are those of an SSLContext."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for key, value in options.items():
        setattr(context, key, value)
    out = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    return out.read()


async def close(*writers: asyncio.StreamWriter) -> None:
    """Close them, whatever has become of them."""
    for writer in writers:
        writer.close()
    for writer in writers:
        with suppress(OSError):
            await writer.wait_closed()


class Egress:
    """One process; `async with` it."""

    def __init__(
        self,
        directory: Path,
        servers: Mapping[str, Sequence[str]],
        names: Mapping[str, Sequence[Any]],
        **limits: float,
    ) -> None:
        self.directory = directory
        self.listeners: dict[str, socket.socket] = {}
        self._writers: list[asyncio.StreamWriter] = []
        self._process: subprocess.Popen[bytes] | None = None
        self.allow(servers)
        self.write("names.json", names)
        self.write("limits.json", limits)

    def write(self, name: str, value: object) -> None:
        (self.directory / name).write_text(json.dumps(value), encoding="utf-8")

    def allow(self, servers: Mapping[str, Sequence[str]]) -> None:
        allowed.write(self.directory / "egress.json", servers)

    async def start(self) -> None:
        notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        path = self.directory / "notify"
        path.unlink(missing_ok=True)
        notified.bind(str(path))
        with notified:
            self._begin({"NOTIFY_SOCKET": str(path)})
            async with asyncio.timeout(6 * WITHIN * PATIENCE):
                said = await asyncio.get_running_loop().sock_recv(notified, 100)
        assert said == b"READY=1", said

    def _begin(self, variables: Mapping[str, str]) -> None:
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(MAIN), str(self.directory)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**os.environ, **variables},
            )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await close(*self._writers)
        self.end("terminate")
        for listener in self.listeners.values():
            listener.close()

    def end(self, how: str) -> None:
        """`terminate` or `kill`."""
        assert self._process is not None
        getattr(self._process, how)()
        self._process.wait(WITHIN * PATIENCE)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def send(self, word: str, instance: str, descriptors: list[int]) -> None:
        """As the unit of an instance does."""
        before, hand.HANDS = hand.HANDS, str(self.directory / "hands.sock")
        try:
            hand.send(word, instance, descriptors)
        finally:
            hand.HANDS = before

    def hand(self, instance: str) -> None:
        """Hand a listening socket over; the same one again after a restart, as systemd does."""
        if instance not in self.listeners:
            self.listeners[instance] = socket.create_server(("127.0.0.1", 0))
        self.send("hand", instance, [self.listeners[instance].fileno()])

    def port(self, instance: str) -> int:
        port: int = self.listeners[instance].getsockname()[1]
        return port

    async def dial(self, instance: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        streams = await asyncio.open_connection("127.0.0.1", self.port(instance))
        self._writers.append(streams[1])
        return streams

    async def ask(self, instance: str, text: str) -> "Asked":
        """Send what a client sends first, and read the answer's head."""
        reader, writer = await self.dial(instance)
        writer.write(text.encode("latin-1"))
        async with asyncio.timeout(WITHIN * PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
        return Asked(int(head.split()[1]), reader, writer)

    async def connect(self, instance: str, target: str) -> "Asked":
        return await self.ask(instance, f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(encoding="utf-8")

    def asked(self, name: str) -> int:
        """How often the name has been looked up."""
        path = self.directory / f"asked-{name}"
        return int(path.read_text(encoding="utf-8")) if path.exists() else 0

    async def counted(self, instance: str, **wanted: Any) -> None:
        """Wait until the counts of a server say so: carried, open, refused."""

        def are() -> bool:
            found = counts.load(self.directory / "counts.json").get(instance, counts.Counts())
            return all(getattr(found, name) == value for name, value in wanted.items())

        await eventually(are, what=f"counts of {instance}: {wanted}")


class Asked:
    """A connection whose request has been answered."""

    def __init__(
        self, status: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.status = status
        self.reader = reader
        self.writer = writer

    async def rest(self) -> bytes:
        """Everything until the other side has ended."""
        async with asyncio.timeout(WITHIN * PATIENCE):
            return await self.reader.read()

    async def read(self, size: int) -> bytes:
        async with asyncio.timeout(WITHIN * PATIENCE):
            return await self.reader.readexactly(size)
