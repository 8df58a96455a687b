"""An isolated server: a process for each handshake session, and one for each modern caller.

Everything passes through, requests of the server to its client included. A session is as long as
its process: when that ends, the id answers 404. Modern requests of one caller share a process of
that caller, which is started again when it is needed.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.channels.greeting import greet
from autobot_mcp_bridge.channels.hooks import Hooks
from autobot_mcp_bridge.channels.instance import Instance
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.host import HostLimits
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.model.versions import META_CAPABILITIES, SUPPORTED, Era
from autobot_mcp_bridge.policy.chain import Chain
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.sessions.conversations import CheckMirrored
from autobot_mcp_bridge.sessions.dialects import meta_of, params_of
from autobot_mcp_bridge.sessions.exchange import Exchange
from autobot_mcp_bridge.sessions.held import Held
from autobot_mcp_bridge.sessions.listeners import Listener, Listeners
from autobot_mcp_bridge.sessions.private import PrivateSession
from autobot_mcp_bridge.sessions.rounds import QUESTIONS
from autobot_mcp_bridge.sessions.session import Session, SessionTable
from autobot_mcp_bridge.sessions.shared import SharedServer
from autobot_mcp_bridge.supervision.journal import Forgetful

# What a server may ask a client for; by these a caller's processes differ (26 basic/index).
CLIENT_FEATURES = tuple(sorted(QUESTIONS.values()))
# The states of an instance that has no process.
AT_REST = (State.BROKEN, State.DISABLED, State.SLEEPING, State.STOPPED)
# A caller: the digest of its token, and what it lets a server ask.
Key = tuple[str, str]


class Makes(Protocol):
    """Makes one more keeper of a process of this server, and runs it."""

    def __call__(self, hooks: Callable[[Hooks], Hooks]) -> Instance:
        """`hooks` puts the parts in that only the caller knows."""
        ...


class IsolatedServer:
    """Conversations with one isolated server; implements `Conversations`.

    Args:
        spec: the server.
        sessions: its table.
        limits: how many processes there may be.
        on_dropped: counts.
        lead: keeps no process, but what counts for all of them: breaker, era, an operator's stop.
        make: makes the keepers.
        chain: what all requests go through.
    """

    def __init__(
        self,
        spec: ServerSpec,
        sessions: SessionTable,
        limits: HostLimits,
        on_dropped: Callable[[str], None],
        lead: Instance,
        make: Makes,
        chain: Chain,
    ) -> None:
        self.spec = spec
        self._chain = chain
        self.sessions = sessions
        self._limits = limits
        self._on_dropped = on_dropped
        self._lead = lead
        self._make = make
        self._private: dict[Session, PrivateSession] = {}
        self._opening: dict[PrivateSession, Principal] = {}
        self._leaving: dict[Instance, Principal] = {}  # whose processes may not have ended yet
        self._callers: dict[Key, tuple[Principal, SharedServer]] = {}
        self.versions: tuple[str, ...] = SUPPORTED  # until a process of it has said which
        sessions.on_end = self._ended
        sessions.is_over = lambda session: self._private[session].instance.channel is None

    @property
    def _all(self) -> Iterator[Instance]:
        for private in (*self._private.values(), *self._opening):
            yield private.instance
        for _, caller in self._callers.values():
            yield caller.instance
        yield from self._leaving

    @property
    def open_calls(self) -> int:
        return sum(len(each.channel.pending) for each in self._all if each.channel is not None)

    @property
    def processes(self) -> int:
        return sum(each.process is not None for each in self._all)

    def configure(self, spec: ServerSpec) -> None:
        self.spec = spec
        for private in self._private.values():
            private.configure(spec)
        for _, caller in self._callers.values():
            caller.configure(spec)
        for instance in self._all:
            instance.configure(spec)

    def forget(self) -> None:
        self.versions = SUPPORTED
        for _, caller in self._callers.values():
            caller.forget()

    # ---- handshake sessions ----

    async def initialize(
        self, principal: Principal, message: dict[str, Any], client_id: bytes
    ) -> tuple[Session | None, bytes]:
        self._check_room(principal)
        private = PrivateSession(self.spec, message, self.sessions.end, self._chain)
        private.gate.instance = self._make(private.hooks)
        private.instance.era = Era.HANDSHAKE  # its client has chosen
        self._opening[private] = principal
        try:
            session, answer = await private.open(
                lambda version: self.sessions.open(principal, version, self._on_dropped)
            )
            if session is not None:
                self._private[session] = private
        finally:
            del self._opening[private]
            if private.session is None:
                self._let_go(private.instance, principal)
        return session, answer.encode(client_id)

    async def begin(
        self, session: Session, message: dict[str, Any], client_id: bytes, *, streamable: bool
    ) -> Exchange | bytes:
        return await self._private[session].begin(message, client_id, streamable=streamable)

    def tell(self, session: Session, message: dict[str, Any]) -> None:
        self._private[session].tell(message)

    async def respond(self, session: Session, message: dict[str, Any]) -> None:
        if not self._private[session].respond(message):
            self._on_dropped("stray_answer")

    def _ended(self, session: Session) -> None:
        private = self._private.pop(session, None)
        if private is not None:
            self._let_go(private.instance, session.principal)

    # ---- modern callers ----

    async def begin_modern(
        self,
        principal: Principal,
        message: dict[str, Any],
        client_id: bytes,
        *,
        streamable: bool,
        check: CheckMirrored,
    ) -> Exchange | bytes:
        key, caller = self._caller(principal, message)
        try:
            return await caller.begin_modern(
                principal, message, client_id, streamable=streamable, check=check
            )
        finally:
            self._forget_unused(key, caller)

    async def listen(self, principal: Principal, message: dict[str, Any]) -> Listener:
        key, caller = self._caller(principal, message)
        try:
            return await caller.listen(principal, message)
        finally:
            self._forget_unused(key, caller)

    def unlisten(self, listener: Listener) -> None:
        for key, (_, caller) in list(self._callers.items()):
            if listener in caller.listeners:
                caller.unlisten(listener)
                self._forget_unused(key, caller)

    def _caller(self, principal: Principal, message: dict[str, Any]) -> tuple[Key, SharedServer]:
        """The caller's own process; of a handshake server one for each set of client features."""
        features = _features(message)
        key = principal.digest, jsonrpc.dumps(features).decode()
        if self._lead.era is Era.MODERN:
            own = [known for known in self._callers if known[0] == principal.digest]
            key = own[0] if own else key
        if key in self._callers:
            known, caller = self._callers[key]
            if not principal.outlasts(known):  # else the caller has renewed its access token
                principal = known
        else:
            self._check_room(principal)
            caller = self._new_caller(key, features)
        self._callers[key] = principal, caller
        return key, caller

    def _forget_unused(self, key: Key, caller: SharedServer) -> None:
        """Nobody needs a caller's entry that has no process, no start to wait for, no listener."""
        instance = caller.instance
        if _is_gone(instance) and not instance.awaited and not len(caller.listeners):
            self._drop(key, caller)

    def _drop(self, key: Key, caller: SharedServer) -> None:
        principal, known = self._callers.get(key, (None, None))
        if principal is not None and known is caller:
            del self._callers[key]
            caller.end()
            self._let_go(caller.instance, principal)

    def _new_caller(self, key: Key, features: dict[str, Any]) -> SharedServer:
        listeners = Listeners(self._limits.sessions_per_token, self._limits.sessions_per_token)
        caller = SharedServer(
            self.spec, self.sessions.empty(), listeners, self._on_dropped, Forgetful(), self._chain
        )
        held = caller.held = Held("\0".join((self.spec.instance, *key)), features)

        def told(message: dict[str, Any], line: bytes) -> None:
            if message["method"] == "notifications/cancelled":
                held.withdraw(message)
            caller.notices.take(message, line)

        async def restored(channel: Channel) -> None:
            self._lead.era = caller.instance.era
            self.versions = caller.versions
            await caller.restored(channel)

        def over() -> None:
            """Its process has ended: unless the next is wanted, the caller is forgotten."""
            if not len(listeners) and not caller.instance.awaited:
                self._drop(key, caller)

        def hooks(common: Hooks) -> Hooks:
            return replace(
                common,
                restored=restored,
                message=told,
                asked=held.ask,
                greet=partial(greet, capabilities=features),
                over=over,
            )

        instance = self._make(hooks)
        instance.era = self._lead.era
        caller.serve_with(instance)
        return caller

    # ---- all of them ----

    def _check_room(self, principal: Principal) -> None:
        """Raise CallError if there are as many processes as may be, or no start is allowed."""
        self._lead.check_startable()
        self._leaving = {
            instance: owner for instance, owner in self._leaving.items() if not _is_gone(instance)
        }
        owners = [session.principal for session in self._private]
        owners += self._opening.values()
        owners += self._leaving.values()
        owners += [owner for owner, _ in self._callers.values()]
        if len(owners) >= self._limits.isolated_per_server:
            raise _too_many("the server has")
        if sum(each.digest == principal.digest for each in owners) >= (
            self._limits.isolated_per_token
        ):
            raise _too_many("the token has")

    def _let_go(self, instance: Instance, owner: Principal) -> None:
        """Have a process end; until it has, it counts."""
        instance.dismiss()
        self._leaving[instance] = owner

    def tools_changed(self) -> None:
        for private in self._private.values():
            private.tools_changed()
        for _, caller in self._callers.values():
            caller.tools_changed()

    def end(self) -> None:
        self.dismiss(lambda _principal: False)

    def suspend(self) -> None:
        self.end()

    def hang_up(self) -> None:
        for session in self.sessions:
            session.outbox.hang_up()
        for _, caller in self._callers.values():
            caller.hang_up()

    def dismiss(self, is_valid: Callable[[Principal], bool]) -> None:
        self.sessions.end_where(lambda session: not is_valid(session.principal))
        for private, principal in self._opening.items():
            if not is_valid(principal):
                private.instance.dismiss()
        for key, (principal, caller) in list(self._callers.items()):
            if is_valid(principal):
                caller.dismiss(is_valid)
            else:
                self._drop(key, caller)


def _is_gone(instance: Instance) -> bool:
    """Whether there is neither a process nor a start under way."""
    return instance.process is None and instance.state in AT_REST


def _features(message: dict[str, Any]) -> dict[str, Any]:
    said = meta_of(params_of(message)).get(META_CAPABILITIES)
    if not isinstance(said, dict):
        return {}
    return {name: said[name] for name in CLIENT_FEATURES if isinstance(said.get(name), dict)}


def _too_many(whose: str) -> CallError:
    return CallError(
        Cause.TOO_MANY_SESSIONS, f"{whose} too many processes of its own", retry_after=30
    )
