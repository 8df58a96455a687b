"""What the kernel knows of a client's connection."""

import socket
import struct

from aiohttp import web

# Offsets in struct tcp_info (linux/tcp.h, since 2.4): packets without an acknowledgement, and
# milliseconds since the last one came.
TCP_INFO_SIZE = 104
UNACKED, LAST_ACK = 24, 56
# Whoever acknowledges nothing for so many milliseconds, though there is something, counts as gone:
# six times the longest that TCP itself waits for on a usual line before it sends again.
SILENT_MS = 5000


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
        info = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_SIZE)
        unacked: int = struct.unpack_from("=I", info, UNACKED)[0]
        last_ack: int = struct.unpack_from("=I", info, LAST_ACK)[0]
        return unacked > 0 and last_ack > SILENT_MS
