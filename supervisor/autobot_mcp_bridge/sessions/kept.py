"""The sessions of one server as the next process finds them (supervision/journal.py)."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from autobot_mcp_bridge.policy.principals import Grant
from autobot_mcp_bridge.supervision.journal import Memory

if TYPE_CHECKING:
    from autobot_mcp_bridge.sessions.session import Session

_SESSION = "session"
_SUBSCRIPTION = "subscription"  # its name is the session's id, a space, the uri
_STREAM = "stream"  # its name is the session's id, a space, the stream's name


@dataclass(frozen=True, slots=True)
class ShownKey:
    """What a caller has shown: sha256 of a key and of a token beside it, and its project."""

    key: str
    token: str | None
    project: str | None


@dataclass(slots=True)
class KeptSession:
    """What was written of a session; `digest` tells whose it is, `stream` its own stream's name."""

    id: str
    digest: str
    version: str
    level: str | None
    stream: str = ""
    capabilities: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    subscriptions: set[str] = field(default_factory=set)
    streams: list[Any] = field(default_factory=list)
    grant: Grant | None = None  # of a caller with an access token
    key: ShownKey | None = None  # of a caller with an API key


class KeptSessions:
    """Writes each change where a later process finds it."""

    def __init__(self, memory: Memory, instance: str) -> None:
        self._memory = memory
        self._instance = instance

    def write(self, session: "Session") -> None:
        """It was opened, or its level or its caller's access token has changed."""
        principal = session.principal
        grant, key = principal.grant, principal.key
        value = {
            "digest": principal.digest,
            "version": session.version,
            "level": session.level,
            "stream": session.streams.own.name,
            "client": [session.client.capabilities, session.client.info],
            "grant": grant.memo() if grant is not None else None,
            "key": [key.sha256, principal.token, principal.project] if key is not None else None,
        }
        self._memory.put(_SESSION, self._instance, session.id, value)

    def subscribed(self, session: "Session", uri: str) -> None:
        self._memory.put(_SUBSCRIPTION, self._instance, f"{session.id} {uri}", 1)

    def unsubscribed(self, session_id: str, uri: str) -> None:
        self._memory.drop(_SUBSCRIPTION, self._instance, f"{session_id} {uri}")

    def ended(self, session_id: str, subscriptions: set[str]) -> None:
        for uri in subscriptions:
            self.unsubscribed(session_id, uri)
        self._memory.drop(_SESSION, self._instance, session_id)

    def leave(self, session_id: str, name: str, memo: list[Any]) -> None:
        """Write down what is kept of a stream."""
        self._memory.put(_STREAM, self._instance, f"{session_id} {name}", memo)

    def read(self) -> list[KeptSession]:
        """Those that had not ended; a record of another form is passed over.

        Their streams are given once: they go on here, or are too old the next time.
        """
        found: dict[str, KeptSession] = {}
        for session_id, value in self._memory.items(_SESSION, self._instance).items():
            kept = _read(session_id, value)
            if kept is not None:
                found[session_id] = kept
        for name in self._memory.items(_SUBSCRIPTION, self._instance):
            session_id, _, uri = name.partition(" ")
            if session_id in found:
                found[session_id].subscriptions.add(uri)
        for name, memo in self._memory.items(_STREAM, self._instance).items():
            session_id = name.partition(" ")[0]
            if session_id in found:
                found[session_id].streams.append(memo)
            self._memory.drop(_STREAM, self._instance, name)
        return list(found.values())


def _read(session_id: str, value: Any) -> KeptSession | None:
    match value:
        case [str(digest), str(version), (str() | None) as level]:  # of a release before
            return KeptSession(session_id, digest, version, level)
        case {
            "digest": str(digest),
            "version": str(version),
            "level": (str() | None) as level,
            "stream": str(stream),
            "client": [dict(capabilities), dict(info)],
            "grant": grant,
        }:
            kept = KeptSession(session_id, digest, version, level, stream, capabilities, info)
            kept.grant = Grant.recall(digest, grant) if grant is not None else None
            kept.key = _shown(value.get("key"))
            return kept
    return None


def _shown(memo: object) -> ShownKey | None:
    match memo:
        case [str(key), (str() | None) as token, (str() | None) as project]:
            return ShownKey(key, token, project)
    return None
