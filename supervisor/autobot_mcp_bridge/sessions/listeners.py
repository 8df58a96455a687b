"""The streams of modern clients that listen for changes (26 basic/patterns/subscriptions)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.versions import META_SUBSCRIPTION
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.sessions.outbox import Outbox
from autobot_mcp_bridge.sessions.session import MAX_SUBSCRIPTIONS, MAX_URI

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
URIS = "resourceSubscriptions"
# Characters of the uris that the listeners of one token, and all of a server, ask for together: each
# is held here, and all are one line to a modern process (caps.queue).
MAX_WISHED_OF_TOKEN = 1 << 20
MAX_WISHED = 4 << 20
# Field of the filter: what it asks for, and the capability that promises it, by area and flag.
FILTER = {
    "toolsListChanged": ("notifications/tools/list_changed", "tools"),
    "promptsListChanged": ("notifications/prompts/list_changed", "prompts"),
    "resourcesListChanged": ("notifications/resources/list_changed", "resources"),
}


@dataclass(eq=False, slots=True)
class Listener:
    """One stream.

    Attributes:
        subscription: the client's own request id, which every message carries.
        methods, uris: what is told on it.
    """

    principal: Principal
    subscription: object
    outbox: Outbox
    methods: frozenset[str]
    uris: frozenset[str]

    @property
    def wished(self) -> int:
        """Characters of its uris."""
        return sum(map(len, self.uris))

    def acknowledgement(self) -> bytes:
        """The first message: what of the wish is granted."""
        granted: dict[str, Any] = {
            field: True for field, (method, _) in FILTER.items() if method in self.methods
        }
        if self.uris:
            granted[URIS] = sorted(self.uris)
        params = {"_meta": {META_SUBSCRIPTION: self.subscription}, "notifications": granted}
        return jsonrpc.dumps({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params})

    def farewell(self) -> bytes:
        """The last message, when the stream ends for another reason than the client's (E16)."""
        meta = {META_SUBSCRIPTION: self.subscription}
        result = {"resultType": "complete", "_meta": meta}
        return jsonrpc.result_body(jsonrpc.dumps(self.subscription), result)


class Listeners:
    """Those of one server.

    Args:
        most: how many there may be, and how many of one token.
    """

    def __init__(self, most: int, most_of_token: int) -> None:
        self._most, self._most_of_token = most, most_of_token
        self._all: list[Listener] = []

    def __iter__(self) -> Iterator[Listener]:
        return iter(list(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def open(
        self,
        principal: Principal,
        message: dict[str, Any],
        capabilities: dict[str, Any],
        make_outbox: Callable[[Principal], Outbox],
    ) -> Listener:
        """Add one, with what the server is capable of.

        Raises:
            CallError: the wish is no filter, or there are too many.
        """
        wish = wish_of(message)
        held = [each for each in self._all if each.principal.digest == principal.digest]
        if len(self._all) >= self._most or len(held) >= self._most_of_token:
            raise CallError(Cause.TOO_MANY_SESSIONS, "there are too many listeners", retry_after=60)
        methods = frozenset(
            method
            for field, (method, area) in FILTER.items()
            if wish.get(field) is True and promised(capabilities, area, "listChanged")
        )
        uris = wish.get(URIS, [])
        if not promised(capabilities, "resources", "subscribe"):
            uris = []
        wished = sum(map(len, uris))
        if (
            wished + sum(each.wished for each in held) > MAX_WISHED_OF_TOKEN
            or wished + sum(each.wished for each in self._all) > MAX_WISHED
        ):
            text = f"params.notifications.{URIS}: all listeners together ask for too many uris"
            raise CallError(Cause.TOO_MANY_SESSIONS, text, retry_after=60)
        listener = Listener(
            principal, message["id"], make_outbox(principal), methods, frozenset(uris)
        )
        self._all.append(listener)
        return listener

    def close(self, listener: Listener) -> None:
        """End it; idempotent."""
        if listener in self._all:
            self._all.remove(listener)
        listener.outbox.close()


def promised(capabilities: dict[str, Any], area: str, flag: str) -> bool:
    part = capabilities.get(area)
    return isinstance(part, dict) and part.get(flag) is True


def wish_of(message: dict[str, Any]) -> dict[str, Any]:
    """The filter of a subscriptions/listen request.

    Raises:
        CallError: it is none.
    """
    params = message.get("params")
    wish = params.get("notifications") if isinstance(params, dict) else None
    if not isinstance(wish, dict):
        raise CallError(Cause.BAD_TEXT, "params.notifications must be an object")
    for field in FILTER:
        if not isinstance(wish.get(field, False), bool):
            raise CallError(Cause.BAD_TEXT, f"params.notifications.{field} must be true or false")
    uris = wish.get(URIS, [])
    if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
        raise CallError(Cause.BAD_TEXT, f"params.notifications.{URIS} must be a list of strings")
    if len(uris) > MAX_SUBSCRIPTIONS or any(len(uri) > MAX_URI for uri in uris):
        text = f"at most {MAX_SUBSCRIPTIONS} uris of {MAX_URI} characters"
        raise CallError(Cause.BAD_TEXT, f"params.notifications.{URIS}: {text}")
    return wish
