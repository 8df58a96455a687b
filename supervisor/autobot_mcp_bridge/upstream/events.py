"""Server-sent events out of bytes (WHATWG HTML, "Server-sent events")."""

from collections.abc import Iterator
from dataclasses import dataclass, field

# What a server may ask to wait before the next try, in seconds; longer is cut.
MOST_RETRY = 60.0
_MOST_ID = 4096  # bytes that come back to the server in a header


class TooLongError(Exception):
    """An event is longer than it may be."""


@dataclass(slots=True)
class Events:
    """Reads one stream.

    Attributes:
        most: bytes of one event.
        last_id: of the last event; None: none had one.
        retry: seconds until the next try, as the server wishes; None: it has not said.
    """

    most: int
    last_id: str | None = None
    retry: float | None = None
    _rest: list[bytes] = field(default_factory=list)  # pieces of a line that has not ended
    _data: list[bytes] = field(default_factory=list)
    _size: int = 0  # bytes of both
    _kind: bytes = b""
    _id: bytes | None = None
    _after_cr: bool = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of each message that is now complete.

        Raises:
            TooLongError: one grows beyond its bound.
        """
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *more = chunk.split(b"\n")
        self._rest.append(first)
        self._grow(len(first))
        if not more:
            return
        lines = [b"".join(self._rest), *more]
        self._rest = [lines.pop()]
        self._size += len(self._rest[0]) - len(lines[0])
        for line in lines:
            if line:
                self._field(line)
            elif (data := self._dispatched()) is not None:
                yield data

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
                self._grow(len(value))
            case b"id" if b"\0" not in value and len(value) <= _MOST_ID:
                self._id = value
            case b"event":
                self._kind = value
            case b"retry" if value.isdigit() and len(value) < 10:
                self.retry = min(int(value) / 1000, MOST_RETRY)

    def _dispatched(self) -> bytes | None:
        """The end of an event; None: it holds no message."""
        if self._id is not None:
            self.last_id = self._id.decode("utf-8", "replace")
        data, kind = b"\n".join(self._data), self._kind
        self._size -= sum(map(len, self._data))
        self._data, self._kind, self._id = [], b"", None
        return data if data and kind in (b"", b"message") else None

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self.most:
            raise TooLongError
