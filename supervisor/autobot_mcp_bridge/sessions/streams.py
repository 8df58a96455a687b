"""The streams of one session: its own, which GET reads, and one for each call that streams."""

import secrets
from collections.abc import Callable, Iterator
from typing import Any

from autobot_mcp_bridge.model.host import HostLimits
from autobot_mcp_bridge.sessions.events import EventStream, Store, place_of

# Answered streams that one session keeps for a client that comes back; then the oldest goes first.
MOST_KEPT = 64
# Random bytes in a stream's name: it must not come again when another process goes on.
NAME_BYTES = 6


class SessionStreams:
    """Makes a session's streams, and finds the one that an id belongs to."""

    __slots__ = ("_answered", "_calls", "_former", "_limits", "_on_dropped", "_store", "own")

    def __init__(
        self, limits: HostLimits, store: Store, on_dropped: Callable[[str], None], former: str = ""
    ) -> None:
        """`former` is the name that the session's own stream had in the process before."""
        self._limits = limits
        self._store = store
        self._on_dropped = on_dropped
        self._former = former
        self._calls: dict[str, EventStream] = {}
        self._answered: dict[str, float] = {}  # by name: when it was, oldest first
        self.own = self._make(limits.stream_bytes)

    def __iter__(self) -> Iterator[EventStream]:
        yield self.own
        yield from list(self._calls.values())

    def _make(self, max_bytes: int) -> EventStream:
        name = secrets.token_urlsafe(NAME_BYTES)
        return EventStream(name, self._limits.stream_events, max_bytes, self._store, self._dropped)

    def _dropped(self) -> None:
        self._on_dropped("slow_stream")

    def begin(self) -> EventStream:
        """A stream for a call."""
        stream = self._make(self._store.limit)
        self._calls[stream.name] = stream
        return stream

    def find(self, event_id: str) -> tuple[EventStream, int | None]:
        """The stream of an id, and the number to go on after.

        Of the session's own stream in a process that was killed nothing is known but its name:
        what has come since is all that there is.

        Raises:
            LookupError: no stream that is still kept has made the id.
        """
        name, number = place_of(event_id)
        if name == self.own.name:
            return self.own, number
        if name == self._former:
            return self.own, None
        return self._calls[name], number

    def answered(self, stream: EventStream, now: float) -> None:
        """A call's stream has all its events; it is kept for a while."""
        if stream.name in self._calls:
            self._answered[stream.name] = now
            if len(self._answered) > MOST_KEPT:
                self._forget(next(iter(self._answered)))

    def expire(self, now: float) -> None:
        """Forget the streams whose client had its time to come back; one that is read has more."""
        for name, since in list(self._answered.items()):
            if since + self._limits.resume >= now:
                break
            if not self._calls[name].taken:
                self._forget(name)

    def _forget(self, name: str) -> None:
        del self._answered[name]
        self._calls.pop(name).forget()

    def close(self) -> None:
        """The session has ended: its own stream ends, too, and nobody can come back to another."""
        self.own.close()
        for stream in self:
            stream.forget()
        self._calls.clear()
        self._answered.clear()

    def recall(self, memo: object, now: float) -> None:
        """Go on with a stream of the process before; one of another form is passed over."""
        if isinstance(memo, list) and memo[:1] == [self._former]:
            self.own.recall(memo)
            return
        stream = self._make(self._store.limit)
        if stream.recall(memo) and stream.ended:
            self._calls[stream.name] = stream
            self.answered(stream, now)
        else:
            stream.forget()

    def memos(self) -> Iterator[tuple[str, int, list[Any]]]:
        """What another process must know: name, bytes and memo of each stream."""
        for stream in self:
            if stream.fetch is not None:
                stream.fetch()
            if stream.used and (stream is self.own or stream.ended):
                yield stream.name, stream.held, stream.memo()
