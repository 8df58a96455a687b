"""The sessions of one server as the next process finds them (supervision/journal.py)."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from autobot_mcp_bridge.policy.principals import Grant
from autobot_mcp_bridge.supervision.journal import Memory

if TYPE_CHECKING:
    from autobot_mcp_bridge.sessions.session import Session

_SESSION = "session"
_SUBSCRIPTION = "subscription"  # its name is the session's id, a space, the uri
_UNREAD = "unread"  # by the session's id


@dataclass(slots=True)
class KeptSession:
    """What was written of a session; `digest` tells whose it is."""

    id: str
    digest: str
    version: str
    level: str | None
    subscriptions: set[str] = field(default_factory=set)
    grant: Grant | None = None  # of a caller with an access token


class KeptSessions:
    """Writes each change where a later process finds it."""

    def __init__(self, memory: Memory, instance: str) -> None:
        self._memory = memory
        self._instance = instance

    def write(self, session: "Session") -> None:
        """It was opened, or its level or its caller's access token has changed."""
        value: list[object] = [session.principal.digest, session.version, session.level]
        if (grant := session.principal.grant) is not None:
            value.append(grant.memo())
        self._memory.put(_SESSION, self._instance, session.id, value)

    def subscribed(self, session: "Session", uri: str) -> None:
        self._memory.put(_SUBSCRIPTION, self._instance, f"{session.id} {uri}", 1)

    def unsubscribed(self, session_id: str, uri: str) -> None:
        self._memory.drop(_SUBSCRIPTION, self._instance, f"{session_id} {uri}")

    def ended(self, session_id: str, subscriptions: set[str]) -> None:
        for uri in subscriptions:
            self.unsubscribed(session_id, uri)
        self._memory.drop(_UNREAD, self._instance, session_id)
        self._memory.drop(_SESSION, self._instance, session_id)

    def leave(self, session_id: str, events: list[bytes]) -> None:
        """Write down what waits for the session's reader."""
        if events:
            # A server's line need not be UTF-8 all through: every byte is to come back.
            texts = [event.decode("latin-1") for event in events]
            self._memory.put(_UNREAD, self._instance, session_id, texts)

    def unread(self, session_id: str) -> list[bytes]:
        """What the proxy before has left for the session's reader, once."""
        texts = self._memory.items(_UNREAD, self._instance).get(session_id)
        self._memory.drop(_UNREAD, self._instance, session_id)
        if not isinstance(texts, list):
            return []
        return [text.encode("latin-1") for text in texts if isinstance(text, str)]

    def read(self) -> list[KeptSession]:
        """Those that had not ended; a record of another form is passed over."""
        found: dict[str, KeptSession] = {}
        for session_id, value in self._memory.items(_SESSION, self._instance).items():
            match value:
                case [str(digest), str(version), (str() | None) as level, *grant]:
                    kept = KeptSession(session_id, digest, version, level)
                    kept.grant = Grant.recall(digest, grant[0]) if grant else None
                    found[session_id] = kept
        for name in self._memory.items(_SUBSCRIPTION, self._instance):
            session_id, _, uri = name.partition(" ")
            if session_id in found:
                found[session_id].subscriptions.add(uri)
        return list(found.values())
