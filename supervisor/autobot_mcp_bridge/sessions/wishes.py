"""What one process is asked to tell, so that each session and listener hears what it asked for.

A handshake process is subscribed to each resource and told one level of logs. A modern one has one
`subscriptions/listen` request of the proxy's, which is replaced when the wishes change: the old one
counts until the new one is acknowledged, so that no change is told twice or not at all. While many
listeners come and go at once, what changes is asked for together, as fast as it is acknowledged.
"""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from autobot_mcp_bridge.channels.call import Call
from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.model.errors import CallError
from autobot_mcp_bridge.model.versions import META_SUBSCRIPTION, Era
from autobot_mcp_bridge.sessions.dialects import meta_of, own_request, params_of
from autobot_mcp_bridge.sessions.listeners import (
    ACKNOWLEDGED,
    FILTER,
    URIS,
    Listeners,
    promised,
)
from autobot_mcp_bridge.sessions.session import LEVELS, SessionTable

# Deadline of the proxy's own requests, in seconds.
OWN_CALL = 3.0
# After so many seconds a listen request is made anew that its server has ended.
LISTEN_AGAIN = 1.0
# Replacements that a modern process is sent ahead of its acknowledgement.
MOST_AHEAD = 8
# Listen requests of earlier proxies that one process is told are over.
MOST_OVER = 1024


class Wishes:
    """The wishes of one server's clients, put to its process."""

    def __init__(self, sessions: SessionTable, listeners: Listeners) -> None:
        self._sessions = sessions
        self._listeners = listeners
        # Of the process that was asked last, which may not take calls yet.
        self._channel: Channel | None = None
        self._listening = 0  # the listen request whose messages count; 0: none
        self._next = 0  # the one that is not acknowledged yet
        self._ahead = 0  # listen requests since the last acknowledgement
        self._since: int | None = None  # the first that is ours, where others have asked before
        self._over: set[int] = set()  # of those before, what the process knows to be over
        self._capabilities: dict[str, Any] = {}
        self._told: frozenset[str] | None = frozenset()  # None: it has to be told again
        self._level = ""  # of the handshake process; "": its own choice

    def uris(self) -> frozenset[str]:
        """Resources that anybody has subscribed to."""
        wanted: set[str] = set()
        for session in self._sessions:
            wanted |= session.subscriptions
        for listener in self._listeners:
            wanted |= listener.uris
        return frozenset(wanted)

    # ---- a handshake process ----

    def restore(self, channel: Channel) -> list[Call]:
        """Bring a new handshake process to where its sessions left the last one."""
        calls: list[Call] = []
        self._level = ""
        levels = [session.level for session in self._sessions if session.level is not None]
        if levels:
            calls.append(self._set_level(channel, min(levels, key=LEVELS.index)))
        calls += [_subscribe(channel, uri) for uri in sorted(self.uris())]
        return calls

    def level(self, wanted: str, but: object = None) -> str:
        """One process has one level: the most verbose that any session wants."""
        others = [each.level for each in self._sessions if each is not but and each.level]
        return min([wanted, *others], key=LEVELS.index)

    def raise_level(self, channel: Channel, wanted: object) -> None:
        """Have the process tell at least that much: one modern request asks for it."""
        if wanted not in LEVELS:
            return
        level = self.level(str(wanted))
        if not self._level or LEVELS.index(level) < LEVELS.index(self._level):
            self._set_level(channel, level)

    def _set_level(self, channel: Channel, level: str) -> Call:
        call = _ask(channel, "logging/setLevel", {"level": level})
        self._level = level
        return call

    def follow(self, channel: Channel, gone: frozenset[str], new: frozenset[str]) -> None:
        """A listener has come or gone: tell the handshake process what that changes.

        Raises:
            CallError: it cannot be told of what is new.
        """
        for uri in new:
            _subscribe(channel, uri)
        for uri in gone - self.uris():
            with suppress(CallError):  # then it tells more than anybody hears
                _ask(channel, "resources/unsubscribe", {"uri": uri})

    # ---- a modern process ----

    def adopt(self, channel: Channel, capabilities: dict[str, Any]) -> None:
        """Ask a process that an earlier proxy has asked, too: by requests that still stand there."""
        self.listen(channel, capabilities, fresh=True)
        self._channel, self._since = channel, self._next

    def listen(self, channel: Channel, capabilities: dict[str, Any], *, fresh: bool) -> None:
        """Ask a modern process to tell what is wanted now, unless it has been.

        Args:
            channel: its channel.
            capabilities: what it is capable of.
            fresh: it has not been asked by us before.
        """
        self._capabilities = capabilities
        if fresh:
            self._listening = self._next = self._ahead = 0
            self._since, self._over = None, set()
        elif self._ahead >= MOST_AHEAD and channel.stands(self._next):
            return  # its acknowledgement brings this about
        wanted = self.uris()
        if not fresh and wanted == self._told:
            return
        wish: dict[str, Any] = {
            field: True
            for field, (_, area) in FILTER.items()
            if promised(capabilities, area, "listChanged")
        }
        if wanted and promised(capabilities, "resources", "subscribe"):
            wish[URIS] = sorted(wanted)
        if not wish and not self._listening:
            return
        message = own_request(Era.MODERN, "subscriptions/listen", {"notifications": wish})
        try:
            number = channel.stand(message, partial(self._ended, channel, capabilities))
        except CallError:
            return  # it does not read; whoever needs it hears so by the call
        if self._next:
            channel.stand_down(self._next)
        self._channel, self._next, self._told = channel, number, wanted
        self._ahead += 1

    def _ended(self, channel: Channel, capabilities: dict[str, Any], number: int) -> None:
        """The process has ended a listen request by itself: one that it had granted is renewed."""
        if number == self._next:
            self._next, self._told = 0, None
        elif number == self._listening:
            self._listening, self._told = 0, None
            loop = asyncio.get_running_loop()
            loop.call_later(LISTEN_AGAIN, self._renew, channel, capabilities)

    def _renew(self, channel: Channel, capabilities: dict[str, Any]) -> None:
        if channel.usable and not self._listening and not self._next:
            self.listen(channel, capabilities, fresh=False)

    def takes(self, message: dict[str, Any]) -> bool:
        """Whether a modern process's message about a subscription is news."""
        number = meta_of(params_of(message)).get(META_SUBSCRIPTION)
        if type(number) is not int or number <= 0:
            return False
        if self._is_of_before(number):
            return self._of_before(number)
        if message["method"] != ACKNOWLEDGED:
            return number == self._listening
        if number == self._next:
            if self._channel is None:
                return False
            if self._listening:
                self._channel.stand_down(self._listening)
            self._listening, self._next, self._ahead = self._next, 0, 0
            self.listen(self._channel, self._capabilities, fresh=False)
        return False

    def _is_of_before(self, number: int) -> bool:
        ours = max(self._listening, self._next)
        return self._since is not None and not self._since <= number <= ours

    def _of_before(self, number: int) -> bool:
        """It tells alone until our own request is acknowledged, and then is over."""
        if self._next and not self._listening:
            return True
        if self._channel is not None and number not in self._over and len(self._over) < MOST_OVER:
            self._over.add(number)
            told = {"requestId": number, "reason": "replaced"}
            self._channel.notify("notifications/cancelled", told)
        return False


def _ask(channel: Channel, method: str, params: dict[str, Any]) -> Call:
    return channel.request(own_request(Era.HANDSHAKE, method, params), OWN_CALL)


def _subscribe(channel: Channel, uri: str) -> Call:
    return _ask(channel, "resources/subscribe", {"uri": uri})
