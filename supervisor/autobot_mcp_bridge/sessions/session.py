"""One client's conversation in the handshake era, and the table of them."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.call import Call
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.host import HostLimits
from autobot_mcp_bridge.model.versions import LATEST_HANDSHAKE
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.sessions.events import EventStream, Store
from autobot_mcp_bridge.sessions.kept import KeptSession, KeptSessions
from autobot_mcp_bridge.sessions.outbox import Outbox
from autobot_mcp_bridge.sessions.streams import SessionStreams
from autobot_mcp_bridge.supervision.journal import Forgetful

if TYPE_CHECKING:
    from autobot_mcp_bridge.sessions.rounds import Question

# RFC 5424 severities as MCP names them, most verbose first (25 server/utilities/logging).
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
# Subscriptions that one session may hold.
MAX_SUBSCRIPTIONS = 1000
MAX_URI = 8192  # characters of one
MAX_SUBSCRIBED = 256 * 1024  # characters of all
# So many full streams of one token may wait for readers; with more, each gets less.
STREAMS_FULL = 16
# Bytes of all events of a server's streams that the next process gets: to write and to read them
# took 0.6 s and 1.2 s on a machine that was busy (measured), while clients wait.
LEFT_BEHIND = 16 << 20
# From this version on a stream begins with an id and no data, and tells when to come back
# (25 basic/transports); clients before it take that for a broken message.
PRIMED = LATEST_HANDSHAKE


# What a client may say of itself in its initialize, in bytes; more is as if it had said nothing.
MAX_CLIENT = 4096


@dataclass(frozen=True, slots=True)
class Client:
    """What a client has said of itself: a modern server is told with each request."""

    capabilities: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        """Read it out of initialize's parameters."""
        capabilities, info = params.get("capabilities"), params.get("clientInfo")
        said = cls(
            capabilities if isinstance(capabilities, dict) else {},
            info if isinstance(info, dict) else {},
        )
        size = len(jsonrpc.dumps([said.capabilities, said.info]))
        return said if size <= MAX_CLIENT else cls()


def is_at_least(level: object, floor: str | None) -> bool:
    """Tell whether a log message of this level is wanted; a level that nobody knows is."""
    if level not in LEVELS or floor not in LEVELS:
        return True
    return LEVELS.index(str(level)) >= LEVELS.index(floor)


class Session:
    """What the proxy remembers of a client between its requests. It outlives the process."""

    __slots__ = (
        "calls",
        "client",
        "id",
        "last_used",
        "level",
        "principal",
        "questions",
        "streams",
        "subscriptions",
        "version",
        "waiting",
    )

    def __init__(
        self, principal: Principal, version: str, streams: SessionStreams, session_id: str = ""
    ) -> None:
        self.id = session_id or secrets.token_urlsafe(24)  # 192 bits (B1 asks for 128)
        self.principal = principal
        self.version = version
        self.streams = streams
        self.client = Client()
        self.level: str | None = None
        self.subscriptions: set[str] = set()
        # The client's own id, as JSON so that 1 and "1" differ, of each call in flight.
        self.calls: dict[bytes, Call] = {}
        # Requests of ours that wait for the client's answers, by id as JSON.
        self.questions: dict[bytes, Question] = {}
        self.waiting: set[bytes] = set()  # ids of calls whose server is being started
        self.last_used = 0.0

    @property
    def outbox(self) -> EventStream:
        """Its own stream, for what belongs to no call."""
        return self.streams.own

    @property
    def primed(self) -> bool:
        return self.version >= PRIMED

    def wants_level(self, level: object) -> bool:
        """Tell whether a log message of this level is for this client."""
        return is_at_least(level, self.level or "info")


class SessionTable:
    """The live sessions of one server; `kept` has them written down for the next proxy."""

    def __init__(self, limits: HostLimits, now: Callable[[], float], kept: KeptSessions) -> None:
        self.kept = kept
        self._limits = limits
        self._now = now
        self._by_id: dict[str, Session] = {}
        self._per_token: dict[str, int] = {}
        self._stores: dict[str, Store] = {}  # by token: no caller can take another's
        self.on_end: Callable[[Session], None] = lambda _session: None
        # Whether it cannot be gone on with, although nobody has ended it yet.
        self.is_over: Callable[[Session], bool] = lambda _session: False

    def empty(self) -> "SessionTable":
        """Another one with the same limits, of which nothing is written down."""
        return SessionTable(self._limits, self._now, KeptSessions(Forgetful(), ""))

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, session: Session) -> bool:
        return self._by_id.get(session.id) is session

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._by_id.values()))

    def open(
        self,
        principal: Principal,
        version: str,
        on_dropped: Callable[[str], None],
        client: Client | None = None,
    ) -> Session:
        """Make a session.

        Raises:
            CallError: the server or the token has too many (B7).
        """
        held = self._per_token.get(principal.digest, 0)
        if len(self._by_id) >= self._limits.sessions_per_server:
            raise CallError(
                Cause.TOO_MANY_SESSIONS, "the server has too many sessions", retry_after=60
            )
        if held >= self._limits.sessions_per_token:
            raise CallError(
                Cause.TOO_MANY_SESSIONS, "the token has too many sessions", retry_after=60
            )
        session = Session(principal, version, self._streams(principal, on_dropped))
        session.client = client or Client()
        self._enter(session)
        self.kept.write(session)
        return session

    def restore(
        self, kept: KeptSession, principal: Principal, on_dropped: Callable[[str], None]
    ) -> None:
        """Go on with a session of the proxy before; its time to expire begins anew."""
        streams = self._streams(principal, on_dropped, kept.stream)
        session = Session(principal, kept.version, streams, kept.id)
        session.level = kept.level
        session.client = Client(kept.capabilities, kept.info)
        session.subscriptions = kept.subscriptions
        self._enter(session)
        for memo in kept.streams:
            streams.recall(memo, session.last_used)
        self.kept.write(session)

    def leave(self) -> None:
        """Write down the streams, whose readers will come to the next process."""
        left = LEFT_BEHIND
        for session in self:
            for name, size, memo in session.streams.memos():
                if size <= left:
                    left -= size
                    self.kept.leave(session.id, name, memo)

    def outbox(self, principal: Principal, on_dropped: Callable[[str], None]) -> Outbox:
        """What waits for a reader of this caller's, in the room that all of them share."""
        limits = self._limits
        return Outbox(limits.stream_events, limits.stream_bytes, on_dropped, self._store(principal))

    def _store(self, principal: Principal) -> Store:
        most = STREAMS_FULL * self._limits.stream_bytes
        return self._stores.setdefault(principal.digest, Store(most))

    def _streams(
        self, principal: Principal, on_dropped: Callable[[str], None], former: str = ""
    ) -> SessionStreams:
        return SessionStreams(self._limits, self._store(principal), on_dropped, former)

    def _enter(self, session: Session) -> None:
        session.last_used = self._now()
        self._by_id[session.id] = session
        digest = session.principal.digest
        self._per_token[digest] = self._per_token.get(digest, 0) + 1

    def find(self, session_id: str, principal: Principal) -> Session | None:
        """The live session of this id, if it is this caller's: an id is no credential (B5)."""
        session = self._by_id.get(session_id)
        if session is None or session.principal.digest != principal.digest:
            return None
        if self.is_over(session):
            self.end(session)
            return None
        if principal.outlasts(session.principal):  # the caller has renewed its access token
            session.principal = principal
            self.kept.write(session)
        session.last_used = self._now()
        return session

    def end(self, session: Session) -> None:
        """End it and its stream; its id is unknown from now on (B4). Idempotent."""
        if self._by_id.pop(session.id, None) is None:
            return
        left = self._per_token[session.principal.digest] - 1
        if left:
            self._per_token[session.principal.digest] = left
        else:
            del self._per_token[session.principal.digest]
            self._stores.pop(session.principal.digest, None)
        session.streams.close()
        self.kept.ended(session.id, session.subscriptions)
        self.on_end(session)

    def answered(self, session: Session, stream: EventStream) -> None:
        """A call's stream has got its answer, and is kept for a client that comes back."""
        session.streams.answered(stream, self._now())

    def end_where(self, condition: Callable[[Session], bool]) -> None:
        for session in self:
            if condition(session):
                self.end(session)

    def expire(self) -> None:
        """End the sessions that have not been used for too long; an open stream is use."""
        now = self._now()
        for session in self:
            session.streams.expire(now)
        limit = now - self._limits.session_idle
        self.end_where(
            lambda session: (
                session.last_used < limit and not session.outbox.taken and not session.calls
            )
        )
