"""Which connections are let through, and what is counted and logged of those that are not."""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

from autobot_mcp_bridge.egress import request
from autobot_mcp_bridge.egress.allowed import Allowed
from autobot_mcp_bridge.egress.counts import Counts
from autobot_mcp_bridge.egress.limits import Limits
from autobot_mcp_bridge.egress.refusals import Reason, RefusedError
from autobot_mcp_bridge.egress.resolver import Resolver
from autobot_mcp_bridge.egress.tunnel import Tunnel
from autobot_mcp_bridge.model.budget import Budget
from autobot_mcp_bridge.model.destinations import Destination, is_covered

# Lines of one server: a burst, and then so many a second. What is not logged is counted.
LOG_BURST, LOG_RATE = 60.0, 1.0

log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class _Open:
    """A connection that is carried, and by which task."""

    instance: str
    wanted: Destination
    task: "asyncio.Task[None]"
    withdrawn: bool = False


@dataclass(slots=True)
class _Lines:
    """What a server may still have logged, and how many lines were not."""

    budget: Budget
    left_out: int = 0


@dataclass(slots=True)
class Gate:
    """Decides; one for all servers.

    Attributes:
        allowed: what each server may reach; another one by `allow` only.
        counts: by instance.
        changed: whether a count has changed since somebody set it to False.
    """

    limits: Limits
    resolver: Resolver
    counts: dict[str, Counts]
    allowed: Allowed = field(default_factory=dict)
    changed: bool = False
    _places: Counter[str] = field(default_factory=Counter)
    _together: int = 0
    _open: set[_Open] = field(default_factory=set)
    _lines: dict[str, _Lines] = field(default_factory=dict)

    def allow(self, allowed: Allowed) -> None:
        """Have this in force from now on; connections that it does not name any more end."""
        self.allowed = allowed
        for one in self._open:
            if not one.withdrawn and not self._lets(one.instance, one.wanted):
                one.withdrawn = True
                one.task.cancel()

    async def serve(self, instance: str, client: socket.socket) -> None:
        """See one connection of a server to its end; it is closed then."""
        counts = self.counts.setdefault(instance, Counts())
        counts.open += 1
        self.changed = True
        try:
            with closing(client), suppress(OSError, EOFError):
                await self._serve(instance, client, counts)
        finally:
            counts.open -= 1
            self.changed = True

    async def _serve(self, instance: str, client: socket.socket, counts: Counts) -> None:
        tunnel = Tunnel(self.limits, self.resolver)
        wanted: Destination | None = None
        try:
            with self._place(instance):
                wanted, rest = await tunnel.read_head(client)
                await self._carry(tunnel, instance, client, wanted, rest)
        except RefusedError as error:
            self._refused(instance, wanted, error)
            # A flood is closed without a word. What was carried has TLS in it, and no room for one.
            is_flood = counts.open > 2 * self.limits.per_server
            if is_flood or error.reason is Reason.NOT_LISTED_ANY_MORE:
                return
            answer = request.refusal if error.reason.status else request.alert
            await tunnel.refuse(client, answer(error.reason))

    @contextmanager
    def _place(self, instance: str) -> Iterator[None]:
        """One of the places for connections, for as long as it is not refused.

        Raises:
            RefusedError: all are taken.
        """
        if self._places[instance] >= self.limits.per_server:
            raise RefusedError(Reason.TOO_MANY, f"{self.limits.per_server} of this server")
        has_share = self._places[instance] >= self.limits.assured
        most = self.limits.together if has_share else self.limits.most
        if self._together >= most:
            raise RefusedError(Reason.TOO_MANY, f"{most} of all servers")
        self._places[instance] += 1
        self._together += 1
        try:
            yield
        finally:
            self._places[instance] -= 1
            self._together -= 1

    async def _carry(
        self,
        tunnel: Tunnel,
        instance: str,
        client: socket.socket,
        wanted: Destination,
        rest: bytes,
    ) -> None:
        """Connect, check, and carry, for as long as the server may reach the host.

        Raises:
            RefusedError: it may not, or the host cannot be reached.
            OSError: a connection broke, or nothing has moved for too long.
        """
        if not self._lets(instance, wanted):
            raise RefusedError(Reason.NOT_LISTED)
        if (task := asyncio.current_task()) is None:
            raise RuntimeError("outside a task nothing could be withdrawn")
        one = _Open(instance, wanted, task)
        self._open.add(one)
        try:
            with closing(await tunnel.connect(instance, wanted)) as host:
                await tunnel.say(client, request.OPEN)
                await tunnel.say(host, await tunnel.read_hello(client, wanted, rest))
                self.counts[instance].carried += 1
                self.changed = True
                await tunnel.carry(client, host)
        except asyncio.CancelledError:
            if not one.withdrawn:
                raise
            task.uncancel()
            raise RefusedError(Reason.NOT_LISTED_ANY_MORE) from None
        finally:
            self._open.discard(one)

    def _lets(self, instance: str, wanted: Destination) -> bool:
        return is_covered(wanted, self.allowed.get(instance, ()))

    def _refused(self, instance: str, wanted: Destination | None, error: RefusedError) -> None:
        reason = error.reason
        self.counts[instance].refused[reason.word] += 1
        self.changed = True
        now = asyncio.get_running_loop().time()
        lines = self._lines.setdefault(instance, _Lines(Budget(LOG_RATE, LOG_BURST, now)))
        if not lines.budget.take(now):
            lines.left_out += 1
            return
        more = f"; {lines.left_out} refusals before it are not shown" if lines.left_out else ""
        lines.left_out = 0
        log.warning(
            "%s: refused%s: %s%s%s",
            instance,
            f" {wanted}" if wanted is not None else "",
            reason.text,
            f" ({error.detail})" if error.detail else "",
            more,
            extra={"MCP_INSTANCE": instance, "MCP_CAUSE": reason.word},
        )
