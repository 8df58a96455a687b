"""Streams that outlive their connections: events have numbers and are kept for who comes back.

25 basic/transports, Resumability and Redelivery: an id names one event of one stream of its
session; a client whose connection broke says the last one that it has, and gets those after it.
Nothing tells what a client has really got, so what was sent is kept, too, as long as there is room:
what nobody was sent yet always goes before it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from autobot_mcp_bridge.channels.backlog import OVERHEAD, Room

# An event up to this size is copied: as it comes it was cut out of a larger piece of memory, whose
# rest is not used again while it is kept (4.6 KiB for each event of 100 bytes, measured).
COPIED = 4096
# Characters of a number in an id that is looked at; no stream has that many events.
MAX_DIGITS = 18


class Peer(Protocol):
    """The connection of a reader."""

    def cut(self) -> None:
        """Another reader has come: end it if it takes nothing any more."""
        ...

    def lost(self) -> bool:
        """Whether it has ended without a word, as far as anybody can tell yet."""
        ...


class Store(Room):
    """Bytes that the streams of one token hold together."""

    __slots__ = ("spare",)

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        # Those that keep events which were sent, in the order in which they must give them up.
        self.spare: dict[EventStream, None] = {}

    def make_place(self, size: int) -> bool:
        """Whether so many bytes fit, if need be instead of events that were sent already."""
        while self.used + size > self.limit and self.spare:
            next(iter(self.spare)).forget_sent()
        return self.used + size <= self.limit


class EventStream:
    """The events of one stream, for one reader at a time.

    Args:
        name: what its ids begin with; no other stream of the session ever has it.
        max_events: held at once, those that were sent included; then the oldest goes first.
        max_bytes: the same of bytes.
        store: shared with other streams.
        dropped: called for each event that is lost before it was sent.

    Attributes:
        ended: no event comes any more.
        left: as `ended`, but another process goes on with it.
        kept: whether anybody can come back to it.
        fetch: brings what has come for the stream and not been put into it yet.
    """

    __slots__ = (
        "_bytes",
        "_dropped",
        "_events",
        "_first",
        "_large",
        "_max_bytes",
        "_max_events",
        "_readers",
        "_sent",
        "_store",
        "ended",
        "fetch",
        "kept",
        "left",
        "name",
        "reader",
    )

    def __init__(
        self,
        name: str,
        max_events: int,
        max_bytes: int,
        store: Store,
        dropped: Callable[[], None],
    ) -> None:
        self.name = name
        self.ended = False
        self.left = False
        self.kept = True
        self.reader: Reader | None = None
        self.fetch: Callable[[], None] | None = None
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._store = store
        self._dropped = dropped
        self._events: deque[bytes] = deque()
        self._first = 1  # the number of the oldest that is held
        self._sent = 0  # the highest number that a reader was given
        self._bytes = 0
        self._readers = 0
        # The last event does not fit, and is there for its reader only; what stands for it later.
        self._large: Callable[[], bytes] | None = None

    # ---- in ----

    @property
    def taken(self) -> bool:
        return self.reader is not None

    @property
    def used(self) -> bool:
        """Whether a client may have an id of it, or will."""
        return self._readers > 0 or self.last > 0

    @property
    def held(self) -> int:
        """Bytes of its events."""
        return self._bytes

    @property
    def last(self) -> int:
        return self._first + len(self._events) - 1

    def push(self, event: bytes) -> None:
        """Add an event; when it does not fit, its elders make place, or it is lost itself."""
        if self.ended or not self._make_place(len(event) + OVERHEAD):
            self._dropped()
            return
        self._add(event)

    def end(self, event: bytes, instead: Callable[[], bytes]) -> None:
        """Add the last event, which is never lost: an answer.

        Args:
            event: of any size.
            instead: what who comes back gets for one that is too large to be kept.
        """
        if self.ended:
            return
        if self._make_place(len(event) + OVERHEAD):
            self._add(event)
        elif self.reader is not None:
            self._large = instead
            self._events.append(event)
        else:
            self._add(instead())
        self.close()

    def _add(self, event: bytes) -> None:
        size = len(event) + OVERHEAD
        if size <= COPIED:
            event = bytes(memoryview(event))
        self._events.append(event)
        self._bytes += size
        self._store.used += size
        self._ring()

    def _make_place(self, size: int) -> bool:
        if size > self._max_bytes:
            return False
        others = self._store.used - self._bytes
        if not self._store.make_place(size) and others + size > self._store.limit:
            return False  # its elders could not make place either
        while self._events and not self._fits(size):
            if self._first > self._sent:
                self._dropped()
            self._pop()
        return True

    def _fits(self, size: int) -> bool:
        return (
            len(self._events) < self._max_events
            and self._bytes + size <= self._max_bytes
            and self._store.used + size <= self._store.limit
        )

    def _pop(self) -> None:
        size = len(self._events.popleft()) + OVERHEAD
        self._first += 1
        self._bytes -= size
        self._store.used -= size
        if self._first > self._sent:
            self._store.spare.pop(self, None)

    def forget_sent(self) -> None:
        """Give up the events that were sent."""
        borrowed = 0 if self._large is None else 1
        while len(self._events) > borrowed and self._first <= self._sent:
            self._pop()
        self._store.spare.pop(self, None)

    def close(self) -> None:
        """No event comes any more; a reader gets those that are there, then the end."""
        self.ended = True
        self._ring()

    def hang_up(self) -> None:
        """As `close`, for this process: its reader comes back to the next one."""
        self.left = True
        self._ring()

    def forget(self) -> None:
        """Nobody can come back to it; whoever reads it may read on."""
        self.kept = False
        if self.reader is None:
            self.ended = True
            self._clear()
        else:
            self.forget_sent()

    def _clear(self) -> None:
        while self._events:
            self._pop()
        self._store.spare.pop(self, None)

    # ---- out ----

    def read(self, after: int | None, peer: Peer) -> "Reader":
        """Begin to read; a reader before, who may be gone without a word, is ended by this.

        Args:
            after: number of the last event that the client has; None: what nobody was sent yet.
            peer: who reads.

        Raises:
            LookupError: there is no such number, or an event after it was dropped.
        """
        place = max(self._sent, self._first - 1) if after is None else after
        if not self._first - 1 <= place <= self.last:
            raise LookupError
        before, self._readers = self.reader, self._readers + 1
        self.reader = reader = Reader(self, place, self._readers, peer)
        if before is not None:
            before.end()
        return reader

    def event_after(self, place: int) -> tuple[int, bytes] | None:
        """The next event and its number, which counts as sent from now on."""
        number = max(place + 1, self._first)
        if number > self.last:
            return None
        event = self._events[number - self._first]
        if number > self._sent:
            self._sent = number
            if self.kept:
                self._store.spare.setdefault(self)
            else:
                self.forget_sent()
        return number, event

    def release(self, reader: "Reader") -> None:
        """A reader has gone; what stays is for who comes back."""
        if self.reader is not reader:
            return
        self.reader = None
        if self._large is not None:
            instead, self._large = self._large, None
            self._events.pop()
            self._sent = min(self._sent, self.last)
            event = instead()
            if self._make_place(len(event) + OVERHEAD):
                self._add(event)
        if not self.kept:
            self.forget()

    def _ring(self) -> None:
        if self.reader is not None:
            self.reader.ring()

    # ---- for the next process ----

    def memo(self) -> list[Any]:
        """The stream as JSON, with its events as bytes that latin-1 carries unchanged."""
        events = [event.decode("latin-1") for event in self._events]
        return [self.name, self.ended, self._first, self._sent, self._readers, events]

    def recall(self, memo: object) -> bool:
        """Go on with what another process has written; False where it is of another form."""
        match memo:
            case [str(name), bool(ended), int(first), int(sent), int(readers), list(events)]:
                self.name, self._first, self._readers = name, first, readers
                for event in events:
                    if isinstance(event, str):
                        self.push(event.encode("latin-1"))
                self._sent = min(sent, self.last)
                if self._events and self._first <= self._sent:
                    self._store.spare.setdefault(self)
                self.ended = ended
                return True
        return False


class Reader:
    """One connection's place in a stream."""

    __slots__ = ("_asked", "_number", "_stream", "_wake", "peer", "place")

    def __init__(self, stream: EventStream, place: int, number: int, peer: Peer) -> None:
        self._stream = stream
        self._number = number
        self._wake: asyncio.Future[None] | None = None
        self._asked = False
        self.peer = peer
        self.place = place

    @property
    def current(self) -> bool:
        """Whether no other one has come."""
        return self._stream.reader is self

    @property
    def cursor(self) -> str:
        """An id for the place itself, which no event and no other reader has."""
        return f"{self._stream.name}.{self.place}.{self._number}"

    @property
    def returns(self) -> bool:
        """Whether the stream goes on elsewhere, after this reader's end."""
        return self.current and not self._stream.ended

    async def next(self, patience: float) -> tuple[str, bytes] | None:
        """The next event with its id; None when nothing came within `patience` seconds, or `ask`.

        Raises:
            EOFError: no event comes any more, here.
        """
        stream = self._stream
        if (found := self._look()) is None:
            try:
                async with asyncio.timeout(patience):
                    # What had rung may have been dropped again by the time it is read.
                    while (found := self._look()) is None:
                        if self._asked:
                            return None
                        self._wake = asyncio.get_running_loop().create_future()
                        await self._wake
            except TimeoutError:
                return None
            finally:
                self._wake = None
                self._asked = False
        self.place, event = found
        return f"{stream.name}.{self.place}", event

    def _look(self) -> tuple[int, bytes] | None:
        stream = self._stream
        if not self.current:
            raise EOFError
        found = stream.event_after(self.place)
        if found is None and (stream.ended or stream.left):
            raise EOFError
        return found

    def ring(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def ask(self) -> None:
        """Have something written to the connection, so that one that is dead is found."""
        self._asked = True
        self.ring()

    def end(self) -> None:
        """Another reader has come."""
        self.peer.cut()
        self.ring()

    def release(self) -> None:
        self._stream.release(self)


def place_of(event_id: str) -> tuple[str, int]:
    """The stream's name and the number in an id.

    Raises:
        LookupError: nobody here has made it.
    """
    name, _, rest = event_id.partition(".")
    number = rest.partition(".")[0]
    if not (number.isascii() and number.isdecimal() and len(number) <= MAX_DIGITS):
        raise LookupError
    return name, int(number)
