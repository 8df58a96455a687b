"""What the kernel knows of a client's connection."""

import socket

from aiohttp import web

# Whose address a request's records and refusals name: behind proxies that the host trusts it is not
# the connection's. Set by whoever takes the request.
CLIENT = web.RequestKey("client", str)
# Where struct tcp_info (linux/tcp.h) counts how often the oldest bytes were sent again in vain.
RETRANSMITS = 2
# So many are a client that has gone: on a quick line 3 s without any acknowledgement, on a slow one
# more, since TCP waits for a round trip (RFC 6298) and doubles that each time. Waiting for an old
# acknowledgement instead would take each idle client for gone until its next one arrives.
GONE = 4


class Connection:
    """A client's connection that reads a stream; implements `sessions.events.Peer`."""

    __slots__ = ("_transport",)

    def __init__(self, request: web.BaseRequest) -> None:
        self._transport = request.transport

    def cut(self) -> None:
        """End it at once if bytes wait for it; else its stream can be ended in order."""
        transport = self._transport
        if transport is not None and transport.get_write_buffer_size():
            transport.abort()

    def lost(self) -> bool:
        transport = self._transport
        if transport is None or transport.is_closing():
            return True
        peer = transport.get_extra_info("socket")
        if peer.family == socket.AF_UNIX:
            return False
        info: bytes = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, RETRANSMITS + 1)
        return info[RETRANSMITS] >= GONE
