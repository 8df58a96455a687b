"""What a handshake session sets for itself: its level of logs, its subscriptions.

A handshake process is asked, and its answer decides; a modern one keeps nothing of a session, so
that what is set here is all there is.
"""

from collections.abc import Callable
from typing import Any

from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.sessions.exchange import Finish
from autobot_mcp_bridge.sessions.session import (
    LEVELS,
    MAX_SUBSCRIBED,
    MAX_SUBSCRIPTIONS,
    MAX_URI,
    Session,
    SessionTable,
)
from autobot_mcp_bridge.sessions.wishes import Wishes

LOCAL = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe"})


class Settings:
    """Of the sessions of one server."""

    def __init__(self, sessions: SessionTable, wishes: Wishes) -> None:
        self._sessions = sessions
        self._wishes = wishes

    def finish(self, session: Session, message: dict[str, Any]) -> Finish | None:
        """What a handshake process's answer to this request sets; the request may be changed.

        Raises:
            CallError: it would be more than a session may have.
        """
        params = message.get("params")
        if not isinstance(params, dict):
            return None
        match message["method"]:
            case "logging/setLevel" if (level := params.get("level")) in LEVELS:
                # One process has one level.
                message["params"] = {**params, "level": self._wishes.level(level, session)}
                return _if_right(lambda: self._set_level(session, level))
            case "resources/subscribe" if isinstance(uri := params.get("uri"), str):
                self._check(session, uri)
                return _if_right(lambda: self._subscribe(session, uri))
        return None

    def set(self, session: Session, method: str, params: dict[str, Any]) -> None:
        """Set it without asking anybody.

        Raises:
            CallError: it is nothing that can be set.
        """
        if method == "logging/setLevel":
            if params.get("level") not in LEVELS:
                text = f"params.level: allowed are {', '.join(LEVELS)}"
                raise CallError(Cause.BAD_TEXT, text)
            self._set_level(session, params["level"])
            return
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise CallError(Cause.BAD_TEXT, "params.uri must be a string")
        if method == "resources/subscribe":
            self._check(session, uri)
            self._subscribe(session, uri)
        else:
            self.unsubscribe(session, params)

    def unsubscribe(self, session: Session, params: dict[str, Any]) -> bool:
        """End a session's own subscription; whether others hold one to the same."""
        uri = params.get("uri")
        if not isinstance(uri, str):
            return False
        session.subscriptions.discard(uri)
        self._sessions.kept.unsubscribed(session.id, uri)
        return uri in self._wishes.uris()

    def _check(self, session: Session, uri: str) -> None:
        if len(uri) > MAX_URI:
            raise CallError(Cause.BAD_TEXT, f"uri: at most {MAX_URI} characters")
        held = len(uri) + sum(map(len, session.subscriptions))
        if len(session.subscriptions) >= MAX_SUBSCRIPTIONS or held > MAX_SUBSCRIBED:
            raise CallError(Cause.QUEUE_FULL, "the session has too many subscriptions")

    def _set_level(self, session: Session, level: str) -> None:
        session.level = level
        if session in self._sessions:
            self._sessions.kept.write(session)

    def _subscribe(self, session: Session, uri: str) -> None:
        if session in self._sessions:
            session.subscriptions.add(uri)
            self._sessions.kept.subscribed(session, uri)


def _if_right(do: Callable[[], None]) -> Finish:
    def finish(answer: Answer) -> Answer:
        if not answer.is_error:
            do()
        return answer

    return finish
