"""Who hears what a server says by itself (C2, C5, E15, E18).

A change of a list or a resource goes to whoever asked for it. A log message names no request: it
goes to the one call that it can only be of, and is never guessed between several.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.call import Call
from autobot_mcp_bridge.model.budget import Budget
from autobot_mcp_bridge.model.versions import META_SUBSCRIPTION, Era, era_of
from autobot_mcp_bridge.sessions.catalog import Catalog
from autobot_mcp_bridge.sessions.dialects import meta_of, params_of, taggable, untagged
from autobot_mcp_bridge.sessions.listeners import Listener, Listeners
from autobot_mcp_bridge.sessions.session import Session, SessionTable, is_at_least
from autobot_mcp_bridge.sessions.tasks import TaskOwners
from autobot_mcp_bridge.sessions.wishes import Wishes

if TYPE_CHECKING:
    from autobot_mcp_bridge.channels.instance import Instance

# A notification is given to at most so many clients a second (and at once): a delivery costs about
# a microsecond, and no server may take more than some percent of the loop with them. So many bytes
# cost as much once more: 200 listeners of 1 MB each held the loop for 0.4 s (measured).
DELIVERIES = 20_000
BYTES_A_DELIVERY = 2048
TOOLS_CHANGED = "notifications/tools/list_changed"
LISTS_CHANGED = ("notifications/resources/list_changed", "notifications/prompts/list_changed")
UPDATED = "notifications/resources/updated"


class Notices:
    """Distributes the notifications of one server."""

    def __init__(
        self,
        sessions: SessionTable,
        listeners: Listeners,
        wishes: Wishes,
        catalog: Catalog,
        tasks: TaskOwners,
        on_dropped: Callable[[str], None],
    ) -> None:
        self.instance: Instance  # set by whoever builds both
        self._sessions = sessions
        self._listeners = listeners
        self._wishes = wishes
        self._catalog = catalog
        self._tasks = tasks
        self._on_dropped = on_dropped
        self._deliveries = Budget(DELIVERIES, DELIVERIES, time.monotonic())

    def take(self, message: dict[str, Any], line: bytes) -> None:
        """Give a notification that names no request to those whom it concerns.

        Sessions get `line` as the server wrote it, but for what belongs to the modern era.
        """
        try:
            self._give(message, line)
        except ValueError:  # nested so deeply that it can be read and not be written
            self._on_dropped("not_json_rpc")

    def _give(self, message: dict[str, Any], line: bytes) -> None:
        hello = self.instance.hello
        method = message["method"]
        modern = hello is not None and era_of(hello) is Era.MODERN
        if modern and (method in (TOOLS_CHANGED, *LISTS_CHANGED, UPDATED) or _is_tagged(message)):
            if not self._wishes.takes(message):
                return
            line = untagged(message)
        params = params_of(message)
        if method == TOOLS_CHANGED:
            self._catalog.changed()
            self.tell_all(message, line)
        elif method in LISTS_CHANGED:
            self.tell_all(message, line)
        elif method == UPDATED:
            self._updated(message, line, params.get("uri"))
        elif method == "notifications/message":
            self._logged(line, params.get("level"), modern=modern)
        elif method == "notifications/tasks/status":
            owner = self._tasks.owner(params.get("taskId"))
            self._deliver(line, [s for s in self._sessions if s.principal.digest == owner])
        elif method == "notifications/cancelled":
            self._on_dropped("cancelled")  # of a request that we answered ourselves
        else:
            self._deliver(line, self._concerned())

    def tell_all(self, message: dict[str, Any], line: bytes) -> None:
        """Every session, and every listener who asked for this."""
        self._deliver(line, list(self._sessions))
        method = message["method"]
        self._publish(message, line, [each for each in self._listeners if method in each.methods])

    def _updated(self, message: dict[str, Any], line: bytes, uri: object) -> None:
        if isinstance(uri, str):
            self._deliver(line, [each for each in self._sessions if uri in each.subscriptions])
            self._publish(message, line, [each for each in self._listeners if uri in each.uris])

    def _publish(self, message: dict[str, Any], line: bytes, listeners: list[Listener]) -> None:
        if not listeners or not self._may_deliver(line, len(listeners)):
            return
        start, end = taggable(message)
        for listener in listeners:
            listener.outbox.push(start + jsonrpc.dumps(listener.subscription) + end)

    def _logged(self, line: bytes, level: object, *, modern: bool) -> None:
        """A modern server logs for requests that asked, a handshake server for all (E18)."""
        pending = self._pending()
        asked = [call for call in pending if call.log_level is not None]
        if len(asked) == 1 and (modern or len(pending) == 1):
            self._log_to(asked[0], line, level)
        elif modern or asked:
            self._on_dropped("ambiguous")
        else:
            self._deliver(line, [each for each in self._concerned() if each.wants_level(level)])

    def _log_to(self, call: Call, line: bytes, level: object) -> None:
        channel = self.instance.channel
        if channel is None or not is_at_least(level, call.log_level):
            return
        if call.streamable or not isinstance(call.owner, Session):
            channel.push(call, line)
        else:
            self._deliver(line, [call.owner])

    def _pending(self) -> list[Call]:
        """The calls that the server works on: those whose clients are asked something rest."""
        channel = self.instance.channel
        calls = channel.pending.values() if channel is not None else ()
        return [call for call in calls if not call.parked]

    def _concerned(self) -> list[Session]:
        """Whom a message may concern: never guessed between several calls, or several tokens."""
        owners = {call.owner for call in self._pending()}
        if not owners and len({session.principal.digest for session in self._sessions}) <= 1:
            return list(self._sessions)
        if len(owners) == 1 and isinstance(owner := owners.pop(), Session):
            return [owner]
        self._on_dropped("ambiguous")
        return []

    def _deliver(self, line: bytes, sessions: list[Session]) -> None:
        if not self._may_deliver(line, len(sessions)):
            return
        channel = self.instance.channel
        for session in sessions:
            calls = [call for call in session.calls.values() if call.streamable and not call.done]
            if len(calls) == 1 and channel is not None:
                channel.push(calls[0], line)
            else:
                session.outbox.push(line)

    def _may_deliver(self, line: bytes, count: int) -> bool:
        cost = count * (1 + len(line) / BYTES_A_DELIVERY)
        if count and (cost > DELIVERIES or not self._deliveries.take(time.monotonic(), cost)):
            self._on_dropped("flood")
            return False
        return True


def _is_tagged(message: dict[str, Any]) -> bool:
    return META_SUBSCRIPTION in meta_of(params_of(message))
