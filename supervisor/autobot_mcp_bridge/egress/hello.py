"""The server's name in a TLS ClientHello (RFC 8446 section 4.1.2, RFC 6066 section 3). Pure.

Bounded: it looks at no more than MOST bytes, and at each of them a few times.
"""

from autobot_mcp_bridge.egress.refusals import Reason, RefusedError

# Those of today's clients have 0.3 to 2 KiB, with post-quantum keys.
MOST = 16 << 10
# Clients use one to three; each piece that comes is looked at together with all before it.
MOST_RECORDS = 32
_RECORD = 5  # bytes of a record's header
_HANDSHAKE = 22  # content type
_CLIENT_HELLO = 1
_MOST_RECORD = 1 << 14
_SERVER_NAME = 0
_HOST_NAME = 0
_ENCRYPTED_CLIENT_HELLO = 0xFE0D


def server_name(data: bytes) -> str | None:
    """The name, in lower case, once the whole ClientHello is there; None while more is to come.

    Args:
        data: everything that the client has sent so far.

    Raises:
        RefusedError: it is no ClientHello, has no such name or hides it, or is too large.
    """
    body = _client_hello(data)
    if body is None:
        if len(data) >= MOST:
            raise RefusedError(Reason.HELLO_TOO_LARGE)
        return None
    extensions = _extensions(body)
    if _ENCRYPTED_CLIENT_HELLO in extensions:
        # The name that can be read is then not the one that counts.
        raise RefusedError(Reason.HIDDEN_SERVER_NAME)
    if _SERVER_NAME not in extensions:
        raise RefusedError(Reason.NO_SERVER_NAME)
    outer = _Reader(extensions[_SERVER_NAME])
    names = _Reader(outer.vector(2))
    kind, name = names.number(1), names.vector(2)
    if kind != _HOST_NAME or not names.is_empty or not outer.is_empty or not name.isascii():
        raise RefusedError(Reason.NOT_TLS)
    return name.decode("ascii").lower()


def _client_hello(data: bytes) -> bytes | None:
    """The message's body, put together from its records; None while more is to come."""
    message, at = b"", 0
    for _ in range(MOST_RECORDS + 1):
        if message[:1] not in (b"", bytes([_CLIENT_HELLO])):
            raise RefusedError(Reason.NOT_TLS)
        if len(message) >= 4:
            end = 4 + int.from_bytes(message[1:4])
            if end > MOST:
                raise RefusedError(Reason.HELLO_TOO_LARGE)
            if len(message) > end:
                raise RefusedError(Reason.NOT_TLS)  # nothing may follow before the answer
            if len(message) == end:
                return message[4:]
        header = data[at : at + _RECORD]
        # What is not TLS is refused at its first byte, and not waited for.
        if header[:1] not in (b"", bytes([_HANDSHAKE])) or header[1:2] not in (b"", b"\x03"):
            raise RefusedError(Reason.NOT_TLS)
        if len(header) < _RECORD:
            return None
        size = int.from_bytes(header[3:])
        if not 0 < size <= _MOST_RECORD:
            raise RefusedError(Reason.NOT_TLS)
        at += _RECORD
        message += data[at : at + size]
        if len(data) < at + size:
            if len(message) >= 4 and 4 + int.from_bytes(message[1:4]) > MOST:
                raise RefusedError(Reason.HELLO_TOO_LARGE)
            return None
        at += size
    raise RefusedError(Reason.HELLO_TOO_LARGE)


def _extensions(body: bytes) -> dict[int, bytes]:
    reader = _Reader(body)
    reader.take(2 + 32)  # version and random
    reader.vector(1)  # session id
    reader.vector(2)  # cipher suites
    reader.vector(1)  # compression methods
    if reader.is_empty:
        return {}
    listed, found = _Reader(reader.vector(2)), dict[int, bytes]()
    while not listed.is_empty:
        kind, value = listed.number(2), listed.vector(2)
        if kind in found:
            raise RefusedError(Reason.NOT_TLS)
        found[kind] = value
    if not reader.is_empty:
        raise RefusedError(Reason.NOT_TLS)
    return found


class _Reader:
    """Takes from the front; what is not there is a malformed message."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_empty(self) -> bool:
        return self._at == len(self._data)

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise RefusedError(Reason.NOT_TLS)
        self._at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, size: int) -> bytes:
        """Bytes behind their own length, which has `size` bytes."""
        return self.take(self.number(size))
