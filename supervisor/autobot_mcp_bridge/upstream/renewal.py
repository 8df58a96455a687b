"""A session that the upstream has forgotten, opened anew (2025-11-25, Session Management).

For a person's client only, which would have to be started again by hand. What the old session held
at the far end is gone; what its client had asked to be told is asked for again.
"""

import asyncio

import orjson

from autobot_mcp_bridge.upstream.calls import Calls
from autobot_mcp_bridge.upstream.client import Sending
from autobot_mcp_bridge.upstream.endings import FailedError, SessionGoneError
from autobot_mcp_bridge.upstream.messages import Message, parse
from autobot_mcp_bridge.upstream.session import Session

# Subscriptions that are asked for again; a client that has more is told of none beyond.
MOST_KEPT = 1000
INITIALIZED = "notifications/initialized"


class Renewal:
    """Remembers how the session began, and begins it again.

    Args:
        session: it.
        calls: whose answers nobody is told.
    """

    def __init__(self, session: Session, calls: Calls) -> None:
        self._session = session
        self._calls = calls
        self._first: Message | None = None
        self._kept: dict[object, Message] = {}
        self._turn = asyncio.Lock()

    def note(self, message: Message) -> None:
        """Take in a request of the client's."""
        uri = message.params.get("uri")
        match message.method:
            case "initialize":
                self._first = message
            case "logging/setLevel":
                self._kept["level"] = message
            case "resources/subscribe" if isinstance(uri, str) and len(self._kept) < MOST_KEPT:
                self._kept["uri", uri] = message
            case "resources/unsubscribe":
                self._kept.pop(("uri", uri), None)

    async def renew(self, lost: str) -> bool:
        """Have another session than the lost one; whether there is one.

        Raises:
            FailedError: the upstream does not take it.
        """
        async with self._turn:
            if self._session.id != lost:
                return True  # another request has met the same
            if self._first is None:
                return False
            self._session.id = None
            try:
                await self._calls.carry(self._first, Sending())
                note = parse(orjson.dumps({"jsonrpc": "2.0", "method": INITIALIZED}))
                if self._session.id is None or note is None:
                    return False
                await self._calls.deliver(note)
                for message in self._kept.values():
                    await self._calls.carry(message, Sending())
            except SessionGoneError:
                return False
            except FailedError:
                self._session.id = lost  # so that the next message tries again
                raise
            return True
