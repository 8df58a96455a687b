"""What a server's tools are, as far as the proxy has to know it.

The list is kept while the server sleeps, so that asking does not wake it; its digest tells whether
a new process lists others; and the parameters that clients mirror into headers are known by tool
(26 transports, Custom Headers), since a stdio server sees no header.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.mirrored import Mirrored
from autobot_mcp_bridge.model.versions import Era
from autobot_mcp_bridge.supervision.journal import Memory

_TOOLS = "tools"


class Catalog:
    """The tools of one server."""

    def __init__(self, memory: Memory, instance: str) -> None:
        self._memory = memory
        self._instance = instance
        self._first: Answer | None = None  # the first page, as the server gave it
        self._era: Era | None = None  # of the process that gave it
        self._whose: str | None = None  # the token that alone may have it; None: any
        self._stale = False  # it is of a definition that no longer stands
        # Of the list that sessions may know, also from a proxy before; "" when they know none.
        self.digest = str(memory.items(_TOOLS, instance).get("", ""))
        self.mirrored: dict[str, tuple[Mirrored, ...]] | None = None  # None: not asked for yet
        self.changes = 0  # so that what was asked for before one counts no more
        self.on_changed: Callable[[], None] = lambda: None  # others than it has listed so far

    def stale(self) -> None:
        """The definition's process has changed: what was cached of it counts no more."""
        self._stale = True
        self._ask_again()
        self.on_changed()

    def changed(self) -> None:
        """The server says that its tools are others."""
        self._first = None
        self.digest = ""
        self._ask_again()
        self._memory.drop(_TOOLS, self._instance, "")
        self.on_changed()

    def cached(self, params: dict[str, Any], whose: str) -> tuple[Answer, Era] | None:
        """The list that is known, and the era whose words it has; `whose` token asks."""
        if self._first is None or self._era is None or self._stale or params.get("cursor"):
            return None
        if self._whose not in (None, whose):
            return None
        return self._first, self._era

    def learn(self, answer: Answer, era: Era, whose: str | None = None) -> None:
        """Keep the first page; a private one for the token that has asked (E20), if one has."""
        old, self._first = self._first, answer
        self._stale, self._era = False, era
        self._whose = whose if whose is not None and _is_private(answer) else None
        if old is None or old.encode(b"0") != answer.encode(b"0"):
            self.digest = digest_of(answer)
            self._memory.put(_TOOLS, self._instance, "", self.digest)
            self._ask_again()

    def _ask_again(self) -> None:
        self.mirrored = None
        self.changes += 1


def _is_private(answer: Answer) -> bool:
    """Whether only its caller may have it (26 server/utilities/caching)."""
    if b'"cacheScope"' not in answer.line:
        return False
    return bool(answer.parsed()["result"].get("cacheScope", "public") != "public")


def digest_of(answer: Answer) -> str:
    return hashlib.sha256(answer.encode(b"0")).hexdigest()
