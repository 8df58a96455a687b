"""One connection: its request, its ClientHello, and then bytes both ways. Sockets do not block.

Nothing reaches the host before the ClientHello has named it, and the address that is connected to
is the very one that has been checked.
"""

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass

from autobot_mcp_bridge.egress import hello, request
from autobot_mcp_bridge.egress.limits import Limits
from autobot_mcp_bridge.egress.refusals import Reason, RefusedError
from autobot_mcp_bridge.egress.resolver import Address, Resolver
from autobot_mcp_bridge.model.destinations import Destination


@dataclass(frozen=True, slots=True)
class Tunnel:
    """How a connection is carried."""

    limits: Limits
    resolver: Resolver

    async def read_head(self, client: socket.socket) -> tuple[Destination, bytes]:
        """Where the request leads, and what has come behind its head.

        Raises:
            RefusedError: it is none that can be carried, or did not come.
            EOFError: the client went without a word.
            OSError: the connection broke.
        """
        loop, data = asyncio.get_running_loop(), b""
        try:
            async with asyncio.timeout(self.limits.head):
                while request.END not in data:
                    if len(data) >= self.limits.head_bytes:
                        raise RefusedError(Reason.HEAD_TOO_LARGE)
                    more = await loop.sock_recv(client, self.limits.head_bytes - len(data))
                    if not more and not data:
                        raise EOFError
                    if not more:
                        raise RefusedError(Reason.BAD_REQUEST)
                    data += more
        except TimeoutError:
            raise RefusedError(Reason.HEAD_TIMEOUT) from None
        head, _, rest = data.partition(request.END)
        return request.parse(head), rest

    async def connect(self, instance: str, wanted: Destination) -> socket.socket:
        """A connection to the first address of the name that answers.

        Raises:
            RefusedError: no address may be, or can be, connected to.
        """
        addresses = await self.resolver.addresses(instance, wanted)
        why = Reason.CONNECT_FAILED
        try:
            async with asyncio.timeout(self.limits.connect):
                for address in addresses:
                    try:
                        return await self._connected(address)
                    except TimeoutError:
                        why = Reason.CONNECT_TIMEOUT
                    except OSError:
                        continue
        except TimeoutError:
            why = Reason.CONNECT_TIMEOUT
        raise RefusedError(why)

    async def _connected(self, address: Address) -> socket.socket:
        loop = asyncio.get_running_loop()
        made = socket.socket(address.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            async with asyncio.timeout(self.limits.attempt):
                await loop.sock_connect(made, address.sockaddr)
            if made.getsockname()[0] == made.getpeername()[0]:
                # This host's own services believe that who comes from here belongs here.
                raise RefusedError(Reason.NOT_PUBLIC, f"{address.host}, of this host")
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            made.close()
            raise
        return made

    async def read_hello(self, client: socket.socket, wanted: Destination, data: bytes) -> bytes:
        """Everything that the client has sent, once its ClientHello names the host.

        Raises:
            RefusedError: it does not.
            OSError: the connection broke.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.limits.hello):
                while (name := hello.server_name(data)) is None:
                    more = await loop.sock_recv(client, hello.MOST - len(data))
                    if not more:
                        raise RefusedError(Reason.NOT_TLS)
                    data += more
        except TimeoutError:
            raise RefusedError(Reason.HELLO_TIMEOUT) from None
        if name != wanted.host:
            raise RefusedError(Reason.OTHER_SERVER_NAME, ascii(name[:100]))
        return data

    async def say(self, peer: socket.socket, data: bytes) -> None:
        """Send it all.

        Raises:
            TimeoutError: the peer does not take it.
            OSError: the connection broke.
        """
        async with asyncio.timeout(self.limits.say):
            await asyncio.get_running_loop().sock_sendall(peer, data)

    async def refuse(self, client: socket.socket, answer: bytes) -> None:
        """Send the last that is said, and see that it arrives.

        What has come and is not read would make the kernel reset the connection, and the answer
        with it (RFC 9112 section 9.6): so it is read, within bounds, and thrown away.

        Raises:
            OSError: the connection broke.
        """
        await self.say(client, answer)
        client.shutdown(socket.SHUT_WR)
        loop, left = asyncio.get_running_loop(), self.limits.linger_bytes
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limits.linger):
                while left > 0 and (more := await loop.sock_recv(client, left)):
                    left -= len(more)

    async def carry(self, client: socket.socket, host: socket.socket) -> None:
        """Bytes both ways until both sides have ended, or nothing has moved for too long.

        Raises:
            TimeoutError: nothing has moved.
        """
        async with asyncio.timeout(self.limits.idle) as clock, asyncio.TaskGroup() as both:
            both.create_task(self._pump(client, host, clock))
            both.create_task(self._pump(host, client, clock))

    async def _pump(
        self, source: socket.socket, sink: socket.socket, clock: asyncio.Timeout
    ) -> None:
        """One direction; a sink that takes nothing holds up its source, and one chunk waits."""
        loop, chunk = asyncio.get_running_loop(), memoryview(bytearray(self.limits.chunk))
        try:
            while size := await loop.sock_recv_into(source, chunk):
                clock.reschedule(loop.time() + self.limits.idle)
                await loop.sock_sendall(sink, chunk[:size])
                clock.reschedule(loop.time() + self.limits.idle)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            # One of the two has gone: the other direction is over, too.
            for end in (source, sink):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
