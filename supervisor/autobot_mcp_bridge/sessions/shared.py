"""A shared server: one process for all its sessions and all modern requests.

The proxy says the first words to the process once and answers each client's from what it heard. A
server that can is spoken to in the modern era, which keeps no state for a client, and handshake
clients are translated; any other is offered no client features, and modern clients are translated.
Sessions outlive the process: what they had subscribed to is restored in the next one. No call is
ever sent twice.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.channels.instance import Instance
from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.versions import (
    LATEST_HANDSHAKE,
    META_LOG_LEVEL,
    META_SERVER,
    SUPPORTED,
    Era,
    era_of,
    negotiate,
    server_info,
    spoken_by,
)
from autobot_mcp_bridge.policy.answers import joined
from autobot_mcp_bridge.policy.chain import Admission, Chain
from autobot_mcp_bridge.policy.methods import HANDSHAKE_REQUESTS, MODERN_REQUESTS, REMOVED_IN_MODERN
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.policy.tools import ToolRule
from autobot_mcp_bridge.sessions.catalog import Catalog, digest_of
from autobot_mcp_bridge.sessions.conversations import CheckMirrored
from autobot_mcp_bridge.sessions.dialects import (
    discovered,
    dress,
    initialized,
    meta_of,
    own_request,
    params_of,
    undress,
)
from autobot_mcp_bridge.sessions.exchange import (
    Encode,
    Exchange,
    Finish,
    for_handshake,
    for_modern,
    translated,
)
from autobot_mcp_bridge.sessions.gate import Gate
from autobot_mcp_bridge.sessions.held import Held
from autobot_mcp_bridge.sessions.listed import Listed
from autobot_mcp_bridge.sessions.listeners import Listener, Listeners, wish_of
from autobot_mcp_bridge.sessions.mirroring import Mirroring
from autobot_mcp_bridge.sessions.notices import TOOLS_CHANGED, Notices
from autobot_mcp_bridge.sessions.rounds import Rounds
from autobot_mcp_bridge.sessions.session import (
    LEVELS,
    Client,
    Session,
    SessionTable,
)
from autobot_mcp_bridge.sessions.settings import LOCAL, Settings
from autobot_mcp_bridge.sessions.tasks import TaskOwners
from autobot_mcp_bridge.sessions.wishes import OWN_CALL, Wishes
from autobot_mcp_bridge.supervision.journal import Memory


class SharedServer:
    """Conversations with one shared server; implements `Conversations`."""

    def __init__(
        self,
        spec: ServerSpec,
        sessions: SessionTable,
        listeners: Listeners,
        on_dropped: Callable[[str], None],
        memory: Memory,
        chain: Chain,
    ) -> None:
        self.sessions = sessions
        self.listeners = listeners
        self._on_dropped = on_dropped
        self.held: Held | None = None  # where a client can be asked
        self._server_meta = b""
        self._catalog = Catalog(memory, spec.instance)
        self._mirroring = Mirroring(self._catalog)
        self._listed = Listed(chain.drift, ToolRule(spec.tools), lambda: self._catalog.changes)
        self._catalog.on_changed = self._listed.changed
        self._gate = Gate(chain, self._listed, spec)
        self._tasks = TaskOwners(memory, spec.instance)
        self._wishes = Wishes(sessions, listeners)
        self._settings = Settings(sessions, self._wishes)
        self._rounds = Rounds(on_dropped)
        self.notices = Notices(
            sessions, listeners, self._wishes, self._catalog, self._tasks, on_dropped
        )
        sessions.on_end = self._ended
        self.configure(spec)

    def serve_with(self, instance: Instance) -> None:
        """Tell whose process it is; once, by whoever builds both."""
        self.instance = self.notices.instance = self._gate.instance = instance

    def configure(self, spec: ServerSpec) -> None:
        self.spec = self._gate.spec = spec
        self._listed.rule = ToolRule(spec.tools)

    def forget(self) -> None:
        self._catalog.stale()
        self._server_meta = b""

    # ---- the two eras' first words ----

    async def hello(self) -> dict[str, Any]:
        """What the server said first, from its last process while it sleeps.

        Raises:
            CallError: it has never run and cannot be started.
        """
        if self.instance.hello is None:
            await self.instance.ready()
        elif self.instance.channel is None:
            self.instance.check_startable()
        hello = self.instance.hello
        if hello is None:  # a change of the definition came in between
            raise CallError(Cause.START_FAILED, "the server is being replaced", retry_after=1)
        return hello

    async def initialize(
        self, principal: Principal, message: dict[str, Any], client_id: bytes
    ) -> tuple[Session | None, bytes]:
        """Answer from what the server said first; no capability is invented."""
        params = params_of(message)
        hello = await self.hello()
        spoken = hello.get("protocolVersion", LATEST_HANDSHAKE)
        version = negotiate(params.get("protocolVersion"), spoken)
        session = self.sessions.open(principal, version, self._on_dropped, Client.of(params))
        return session, jsonrpc.result_body(client_id, initialized(hello, version))

    # ---- requests ----

    async def begin(
        self, session: Session, message: dict[str, Any], client_id: bytes, *, streamable: bool
    ) -> Exchange | bytes:
        method = message["method"]
        if method == "ping":
            return jsonrpc.result_body(client_id, {})
        if client_id in session.calls or client_id in session.waiting:
            raise CallError(Cause.DUPLICATE_ID, "this id is in flight already")
        session.waiting.add(client_id)  # so that it can be cancelled before it is sent
        admission = Admission()
        try:
            admission = await self._gate.admit(
                session.principal, session.id, message, HANDSHAKE_REQUESTS
            )
            return await self._begin(session, message, client_id, admission, streamable=streamable)
        finally:
            session.waiting.discard(client_id)
            admission.give_up()

    async def _begin(
        self,
        session: Session,
        message: dict[str, Any],
        client_id: bytes,
        admission: Admission,
        *,
        streamable: bool,
    ) -> Exchange | bytes:
        """Send on what has been admitted."""
        method, params = message["method"], params_of(message)
        if (
            method == "tools/list"
            and (known := self._known_tools(params, session.principal)) is not None
        ):
            return admission.finished(known[0]).encode(client_id)
        finish = joined(self._finish(session.principal, method, params), admission.finish)
        channel = await self._ready(session, client_id, method)
        if self.era is Era.MODERN:
            return self._begin_dressed(
                channel, session, message, client_id, finish, admission, streamable=streamable
            )
        if method in LOCAL:
            if method == "resources/unsubscribe" and self._settings.unsubscribe(session, params):
                return jsonrpc.result_body(client_id, {})
            finish = self._settings.finish(session, message)
        call = admission.sent(channel.request(message, self.spec.timeouts.call, session))
        call.streamable = streamable
        return Exchange(channel, call, client_id, for_handshake, session=session, finish=finish)

    def _begin_dressed(
        self,
        channel: Channel,
        session: Session,
        message: dict[str, Any],
        client_id: bytes,
        finish: Finish | None,
        admission: Admission,
        *,
        streamable: bool,
    ) -> Exchange | bytes:
        """A handshake client's request to a modern process, which keeps nothing of a session."""
        method = message["method"]
        if method in LOCAL:
            self._settings.set(session, method, params_of(message))
            self._follow(channel)
            return jsonrpc.result_body(client_id, {})
        level = dress(message, session)
        call = admission.sent(channel.request(message, self.spec.timeouts.call, session))
        call.streamable, call.log_level = streamable, level
        self._rounds.watch(channel, call, session, message)
        return Exchange(channel, call, client_id, for_handshake, session=session, finish=finish)

    async def begin_modern(
        self,
        principal: Principal,
        message: dict[str, Any],
        client_id: bytes,
        *,
        streamable: bool,
        check: CheckMirrored,
    ) -> Exchange | bytes:
        """Send a 2026-07-28 request on; to a handshake process in its own words."""
        method = message["method"]
        if method in REMOVED_IN_MODERN:
            raise CallError(Cause.METHOD_DENIED, f"method not found: {method}")
        params = params_of(message)
        if self.held is not None and self.held.is_ours(params):
            admission = self._gate.resumed(principal, message, MODERN_REQUESTS)
            return self._resume(self.held, message, client_id, admission, streamable=streamable)
        sent = {**params}  # what the client's headers mirror, whatever a hook makes of it
        digest = self.held.digest(message) if self.held is not None else ""
        admission = await self._gate.admit(principal, "", message, MODERN_REQUESTS)
        try:
            if method == "server/discover":
                hello = await self.hello()
                return jsonrpc.result_body(client_id, discovered(hello, self.versions))
            if method == "tools/list" and (known := self._known_tools(sent, principal)) is not None:
                return self._encode(method, known[1])(admission.finished(known[0]), client_id)[1]
            finish = joined(self._finish(principal, method, sent), admission.finish)
            channel = await self.instance.ready()
            if method == "tools/list":
                await self._listed.admit(channel, self.era)
            if method == "tools/call":
                mirrored = await self._mirroring.find(channel, self.era)
                if (found := mirrored.get(str(sent.get("name")))) is not None:
                    check(found, sent)
            level = meta_of(sent).get(META_LOG_LEVEL)
            if self.era is Era.HANDSHAKE:
                undress(params_of(message))
                if level is not None:
                    self._wishes.raise_level(channel, level)
            call = admission.sent(channel.request(message, self.spec.timeouts.call, principal))
            call.streamable = streamable
            call.log_level = level if level in LEVELS else None
            if self.held is not None and self.era is Era.HANDSHAKE:
                self.held.begun(channel, call, method, digest)
            encode = self._encode(method, self.era)
            return Exchange(channel, call, client_id, encode, finish=finish)
        finally:
            admission.give_up()

    def _resume(
        self,
        held: Held,
        message: dict[str, Any],
        client_id: bytes,
        admission: Admission,
        *,
        streamable: bool,
    ) -> Exchange | bytes:
        """A retry of a call that a handshake process has interrupted with a question."""
        going = held.resume(message)
        if isinstance(going, dict):
            return jsonrpc.result_body(client_id, going)
        channel, call = going
        call.streamable = streamable
        level = meta_of(params_of(message)).get(META_LOG_LEVEL)
        call.log_level = level if level in LEVELS else None
        encode = self._encode(message["method"], self.era)
        return Exchange(channel, call, client_id, encode, finish=admission.finish)

    def tell(self, session: Session, message: dict[str, Any]) -> None:
        """Only a cancellation means something to a shared server, of the client's own call (D2).

        Its initialized was the proxy's own; progress and roots could only belong to requests that
        it never makes (D3); others are not known to either era.
        """
        if message["method"] != "notifications/cancelled":
            return
        params = params_of(message)
        client_id = jsonrpc.dumps(params.get("requestId"))
        session.waiting.discard(client_id)  # of a call that no server has seen yet
        call = session.calls.get(client_id)
        channel = self.instance.channel
        if call is not None and channel is not None:
            channel.cancel(call, str(params.get("reason") or "the client cancelled it"))

    async def respond(self, session: Session, message: dict[str, Any]) -> None:
        """An answer to what the process wanted to know; a handshake process asks nothing (D3)."""
        self._rounds.respond(session, message)

    @property
    def versions(self) -> tuple[str, ...]:
        if self.held is None:
            return SUPPORTED
        return spoken_by(self.instance.hello or {})

    @property
    def open_calls(self) -> int:
        channel = self.instance.channel
        return len(channel.pending) if channel is not None else 0

    @property
    def processes(self) -> int:
        return int(self.instance.process is not None)

    @property
    def era(self) -> Era:
        """Of the process that there is."""
        return era_of(self.instance.hello or {})

    async def _ready(self, session: Session, client_id: bytes, method: str) -> Channel:
        """The channel for a call, which can be cancelled while its server starts."""
        channel = await self.instance.ready()
        if method == "tools/list":
            await self._listed.admit(channel, self.era)
        if client_id not in session.waiting or session not in self.sessions:
            raise CallError(Cause.CANCELLED, "the call was cancelled before it was made")
        return channel

    def _finish(self, principal: Principal, method: str, params: dict[str, Any]) -> Finish | None:
        """What is to be done with the answer, whoever asked.

        Raises:
            CallError: the request is denied.
        """
        if method == "tools/list":
            return self._finish_tools(params, principal)
        if method == "tools/call":
            if "task" in params:
                return lambda answer: self._tasks.learn(principal, answer)
        elif method == "tasks/list":
            return lambda answer: self._tasks.own(principal, answer)
        elif method.startswith("tasks/"):
            self._tasks.check(principal, params)
        return None

    def _ended(self, session: Session) -> None:
        """Its calls go on, but for those that wait for its own answers."""
        channel = self.instance.channel
        for call in session.calls.values() if channel is not None else ():
            if call.parked and channel is not None:
                channel.cancel(call, "its session has ended")

    def end(self) -> None:
        self.sessions.end_where(lambda _session: True)
        self.suspend()

    def suspend(self) -> None:
        for listener in self.listeners:
            self.listeners.close(listener)

    def hang_up(self) -> None:
        for stream in (*self.sessions, *self.listeners):
            stream.outbox.hang_up()

    def dismiss(self, is_valid: Callable[[Principal], bool]) -> None:
        self.sessions.end_where(lambda session: not is_valid(session.principal))
        for listener in self.listeners:
            if not is_valid(listener.principal):
                self.listeners.close(listener)
        channel = self.instance.channel
        for call in list(channel.pending.values()) if channel is not None else ():
            owner = call.owner.principal if isinstance(call.owner, Session) else call.owner
            if channel is not None and isinstance(owner, Principal) and not is_valid(owner):
                channel.cancel(call, "its token is no longer valid")

    def _encode(self, method: str, era: Era) -> Encode:
        """What an answer in the words of that era becomes for a modern client."""
        if era is Era.MODERN:
            return for_modern
        if not self._server_meta and self.instance.hello is not None:
            info = jsonrpc.dumps({META_SERVER: server_info(self.instance.hello)})
            self._server_meta = b'"_meta":' + info + b","
        return translated(method, self._server_meta)

    # ---- listening ----

    async def listen(self, principal: Principal, message: dict[str, Any]) -> Listener:
        wish_of(message)  # before anything is started for it
        await self._gate.admit(principal, "", message, MODERN_REQUESTS)
        hello = await self.hello()
        before = self._wishes.uris()
        listener = self.listeners.open(
            principal,
            message,
            hello["capabilities"],
            lambda of: self.sessions.outbox(of, self._on_dropped),
        )
        try:
            if (channel := self.instance.channel) is not None:
                self._follow(channel, new=listener.uris - before)
        except CallError:
            self.listeners.close(listener)
            raise
        return listener

    def unlisten(self, listener: Listener) -> None:
        self.listeners.close(listener)
        if (channel := self.instance.channel) is not None:
            self._follow(channel, gone=listener.uris)

    def _follow(
        self,
        channel: Channel,
        new: frozenset[str] = frozenset(),
        gone: frozenset[str] = frozenset(),
    ) -> None:
        """Have the process tell what is wanted now."""
        hello = self.instance.hello
        if hello is not None and era_of(hello) is Era.MODERN:
            self._wishes.listen(channel, hello["capabilities"], fresh=False)
        else:
            self._wishes.follow(channel, gone=gone, new=new)

    # ---- lists ----

    def _known_tools(
        self, params: dict[str, Any], principal: Principal
    ) -> tuple[Answer, Era] | None:
        """The list of a server that sleeps, so that asking does not wake it (A15)."""
        known = self._catalog.cached(params, principal.digest)
        if known is None or self.instance.channel is not None:
            return None
        self.instance.check_startable()
        answer, era = known
        return self._listed.known(answer), era

    def _finish_tools(self, params: dict[str, Any], principal: Principal) -> Finish:
        first_page = not params.get("cursor")

        def finish(answer: Answer) -> Answer:
            if answer.is_error:
                return answer
            if first_page:
                self._catalog.learn(answer, self.era, principal.digest)
            return self._listed.passed(answer, first=first_page)

        return finish

    # ---- a process ----

    async def restored(self, channel: Channel) -> None:
        """Bring a new process to where the sessions left the last one."""
        hello = self.instance.hello or {}
        if era_of(hello) is Era.MODERN:
            self._wishes.listen(channel, hello["capabilities"], fresh=True)
            calls = []
        else:
            calls = self._wishes.restore(channel)
        tools = None
        if self._catalog.digest:
            tools = channel.request(own_request(self.era, "tools/list", {}), OWN_CALL)
        for call in calls:
            await call.result()
        if tools is None or not self._catalog.digest:
            return
        answer = await tools.result()
        if answer.is_error:
            return
        with suppress(CallError):  # it is too large to be looked at; whoever asks for it is told
            self._listed.passed(answer, first=True)
        differs = digest_of(answer) != self._catalog.digest
        self._catalog.learn(answer, self.era)
        if differs:
            self.tools_changed()

    def tools_changed(self) -> None:
        message = {"jsonrpc": "2.0", "method": TOOLS_CHANGED}
        self.notices.tell_all(message, jsonrpc.dumps(message))

    def adopted(self, channel: Channel) -> None:
        """Go on with a process that an earlier proxy has greeted."""
        if self.era is Era.MODERN:
            self._wishes.adopt(channel, (self.instance.hello or {}).get("capabilities", {}))
