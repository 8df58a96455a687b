"""One client's conversation in the handshake era, and the table of them."""

import secrets
from collections.abc import Callable, Iterator

from autobot_mcp_bridge.channels.backlog import Room
from autobot_mcp_bridge.channels.channel import Call
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.host import HostLimits
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.sessions.kept import KeptSession, KeptSessions
from autobot_mcp_bridge.sessions.outbox import Outbox

# RFC 5424 severities as MCP names them, most verbose first (25 server/utilities/logging).
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
# Subscriptions that one session may hold.
MAX_SUBSCRIPTIONS = 1000
MAX_URI = 8192  # characters of one
# So many full streams of one token may wait for readers; with more, each gets less.
STREAMS_FULL = 16


class Session:
    """What the proxy remembers of a client between its requests. It outlives the process."""

    __slots__ = (
        "calls",
        "id",
        "last_used",
        "level",
        "outbox",
        "principal",
        "subscriptions",
        "version",
        "waiting",
    )

    def __init__(
        self, principal: Principal, version: str, outbox: Outbox, session_id: str = ""
    ) -> None:
        self.id = session_id or secrets.token_urlsafe(24)  # 192 bits (B1 asks for 128)
        self.principal = principal
        self.version = version
        self.outbox = outbox
        self.level: str | None = None
        self.subscriptions: set[str] = set()
        # The client's own id, as JSON so that 1 and "1" differ, of each call in flight.
        self.calls: dict[bytes, Call] = {}
        self.waiting: set[bytes] = set()  # ids of calls whose server is being started
        self.last_used = 0.0

    def wants_level(self, level: object) -> bool:
        """Tell whether a log message of this level is for this client."""
        wanted = self.level or "info"
        return level not in LEVELS or LEVELS.index(str(level)) >= LEVELS.index(wanted)


class SessionTable:
    """The live sessions of one server; `kept` has them written down for the next proxy."""

    def __init__(self, limits: HostLimits, now: Callable[[], float], kept: KeptSessions) -> None:
        self.kept = kept
        self._limits = limits
        self._now = now
        self._by_id: dict[str, Session] = {}
        self._per_token: dict[str, int] = {}
        self._rooms: dict[str, Room] = {}  # by token: no caller can take another's

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, session: Session) -> bool:
        return self._by_id.get(session.id) is session

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._by_id.values()))

    def open(
        self, principal: Principal, version: str, on_dropped: Callable[[str], None]
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
        session = Session(principal, version, self._outbox(principal, on_dropped))
        self._enter(session)
        self.kept.write(session)
        return session

    def restore(
        self, kept: KeptSession, principal: Principal, on_dropped: Callable[[str], None]
    ) -> None:
        """Go on with a session of the proxy before; its time to expire begins anew."""
        outbox = self._outbox(principal, on_dropped)
        session = Session(principal, kept.version, outbox, kept.id)
        session.level = kept.level
        session.subscriptions = kept.subscriptions
        self._enter(session)
        for event in self.kept.unread(session.id):
            session.outbox.push(event)

    def leave(self) -> None:
        """Write down what waits for readers, who will come to the next proxy."""
        for session in self:
            self.kept.leave(session.id, session.outbox.rest())

    def _outbox(self, principal: Principal, on_dropped: Callable[[str], None]) -> Outbox:
        limits = self._limits
        room = self._rooms.setdefault(principal.digest, Room(STREAMS_FULL * limits.stream_bytes))
        return Outbox(limits.stream_events, limits.stream_bytes, on_dropped, room)

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
            self._rooms.pop(session.principal.digest, None)
        session.outbox.close()
        self.kept.ended(session.id, session.subscriptions)

    def end_where(self, condition: Callable[[Session], bool]) -> None:
        for session in self:
            if condition(session):
                self.end(session)

    def expire(self) -> None:
        """End the sessions that have not been used for too long; an open stream is use."""
        limit = self._now() - self._limits.session_idle
        self.end_where(
            lambda session: (
                session.last_used < limit and not session.outbox.taken and not session.calls
            )
        )
