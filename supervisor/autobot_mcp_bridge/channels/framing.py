"""Lines out of the bytes of an untrusted server, each at most so long."""

from dataclasses import dataclass

# What is kept of a line that was too long: enough to find the id it answers at either end.
KEEP = 256


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line above the cap, dropped while it arrived; only its ends were kept."""

    head: bytes
    tail: bytes
    size: int


class LineSplitter:
    """Collects chunks into lines; holds at most `cap` bytes of an unfinished line.

    A carriage return becomes a space: in JSON text it can only be white space, and within an
    event stream it would end the line (BUGS B9).
    """

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._parts: list[bytes] = []
        self._size = 0
        self._dropping = False
        self._head = self._tail = b""

    @property
    def rest(self) -> bytes:
        """What has come of a line that is not whole; of one that is too long nothing."""
        return b"".join(self._parts)

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """Take what arrived and give the lines that are whole, blank ones left out."""
        lines: list[bytes | Oversized] = []
        pieces = chunk.split(b"\n")
        rest = pieces.pop()
        for piece in pieces:
            line = self._finish(piece)
            if line:
                lines.append(line)
        if rest:
            self._keep(rest)
        return lines

    def _finish(self, piece: bytes) -> bytes | Oversized:
        if self._parts or self._dropping or len(piece) > self._cap:
            self._keep(piece)
            size, self._size = self._size, 0
            if self._dropping:
                self._dropping = False
                return Oversized(self._head, self._tail, size)
            piece = b"".join(self._parts)
            self._parts.clear()
        if b"\r" in piece:
            piece = piece.replace(b"\r", b" ")
        return piece if not piece.isspace() else b""

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._dropping:
            self._tail = (self._tail + piece[-KEEP:])[-KEEP:]
            return
        self._parts.append(piece)
        if self._size > self._cap:
            whole = b"".join(self._parts)
            self._head, self._tail = whole[:KEEP], whole[-KEEP:]
            self._parts.clear()
            self._dropping = True
