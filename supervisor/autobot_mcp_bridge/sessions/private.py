"""One handshake session and the process that is its alone (D3): nothing in between but ids."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.call import Call
from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.channels.greeting import RefusedError, check_initialize
from autobot_mcp_bridge.channels.hooks import Hooks
from autobot_mcp_bridge.channels.instance import Instance
from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.versions import Era
from autobot_mcp_bridge.policy.answers import joined
from autobot_mcp_bridge.policy.chain import Admission, Chain
from autobot_mcp_bridge.policy.methods import HANDSHAKE_REQUESTS
from autobot_mcp_bridge.policy.tools import ToolRule
from autobot_mcp_bridge.sessions.dialects import params_of
from autobot_mcp_bridge.sessions.exchange import Exchange, Finish, for_handshake
from autobot_mcp_bridge.sessions.gate import Gate
from autobot_mcp_bridge.sessions.listed import Listed
from autobot_mcp_bridge.sessions.notices import TOOLS_CHANGED
from autobot_mcp_bridge.sessions.rounds import PATIENCE, QUESTIONS
from autobot_mcp_bridge.sessions.session import Session

# Requests of the server's that wait for the client's answers.
MAX_ASKED = 64
# Messages of the server's that wait for the session to be opened, right after its first words.
MAX_EARLY = 64


class PrivateSession:
    """A client and its process.

    Attributes:
        gate: what its requests go through; its `instance` is set by whoever makes the process.
    """

    def __init__(
        self,
        spec: ServerSpec,
        initialize: dict[str, Any],
        end: Callable[[Session], None],
        chain: Chain,
    ) -> None:
        """`initialize` is the client's own; `end` is called when the process has ended."""
        self._changes = 0  # of its tools, as the server tells
        self._listed = Listed(chain.drift, ToolRule(spec.tools), lambda: self._changes)
        self.gate = Gate(chain, self._listed, spec)
        self.session: Session | None = None
        self._end = end
        self._initialize = initialize
        features = params_of(initialize).get("capabilities")
        self._features = frozenset(features if isinstance(features, dict) else ())
        self._hello: Call | None = None  # its initialize, on its way
        self._answer: Answer | None = None
        self._asked: set[bytes] = set()  # ids of the server's requests, as JSON
        self._early: list[bytes] = []  # what the server says before there is a session
        self.configure(spec)

    def configure(self, spec: ServerSpec) -> None:
        self._spec = self.gate.spec = spec
        self._listed.rule = ToolRule(spec.tools)

    def hooks(self, common: Hooks) -> Hooks:
        return replace(
            common,
            greet=self._greet,
            message=self._notified,
            asked=self._ask,
            over=self._over,
        )

    def _over(self) -> None:
        if self.session is not None:
            self._end(self.session)

    async def open(self, enter: Callable[[str], Session]) -> tuple[Session | None, Answer]:
        """Start the process with the client's own initialize; the answer is the server's own (B2).

        Args:
            enter: makes a session of the version that the server has chosen.

        Raises:
            CallError: there is no answer.
        """
        try:
            await self.instance.ready()
        except CallError:
            if self._answer is None:
                raise
            return None, self._answer
        hello = self.instance.hello
        if hello is None or self._answer is None:
            raise CallError(Cause.START_FAILED, "the server is being replaced", retry_after=1)
        self.session = enter(hello["protocolVersion"])
        for line in self._early:
            self.session.outbox.push(line)
        self._early.clear()
        self._initialize = {}  # said, and as large as a body may be
        return self.session, self._answer

    async def _greet(self, channel: Channel, _era: Era | None, deadline: float) -> dict[str, Any]:
        self._answer = None
        self._asked.clear()
        self._early.clear()
        self._hello = channel.request(self._initialize, deadline * 2)
        answer = await self._hello.result()
        if answer.is_error:
            self._answer = answer
            raise RefusedError
        result = check_initialize(channel, answer)
        self._answer = answer
        return result

    # ---- from the client ----

    async def begin(
        self, message: dict[str, Any], client_id: bytes, *, streamable: bool
    ) -> Exchange:
        """Send a request on.

        Raises:
            CallError: it is denied, or the process has just ended.
        """
        session, method = self._session, message["method"]
        if client_id in session.calls or client_id in session.waiting:
            raise CallError(Cause.DUPLICATE_ID, "this id is in flight already")
        session.waiting.add(client_id)
        admission = Admission()
        try:
            admission = await self.gate.admit(
                session.principal, session.id, message, HANDSHAKE_REQUESTS
            )
            if method == "tools/list":
                await self._listed.admit(self._channel, Era.HANDSHAKE)
            if client_id not in session.waiting:
                raise CallError(Cause.CANCELLED, "the call was cancelled before it was made")
            channel = self._channel
            if len(channel.pending) >= self.instance.max_calls:
                raise CallError(Cause.QUEUE_FULL, "too many calls are in flight", retry_after=1)
            call = admission.sent(channel.request(message, self._spec.timeouts.call, session))
            call.streamable = streamable
            finish = self._finish_tools(message) if method == "tools/list" else None
            finish = joined(finish, admission.finish)
            return Exchange(channel, call, client_id, for_handshake, session=session, finish=finish)
        finally:
            session.waiting.discard(client_id)
            admission.give_up()

    def tell(self, message: dict[str, Any]) -> None:
        """Pass a notification on; a cancellation under our own id for the call (D2)."""
        channel = self.instance.channel
        if channel is None:
            return
        params = params_of(message)
        if message["method"] == "notifications/cancelled":
            client_id = jsonrpc.dumps(params.get("requestId"))
            self._session.waiting.discard(client_id)
            call = self._session.calls.get(client_id)
            if call is not None:
                channel.cancel(call, str(params.get("reason") or "the client cancelled it"))
            return
        channel.pass_on(message)

    def respond(self, message: dict[str, Any]) -> bool:
        """Pass an answer on, once, to the request that waits for it; else False."""
        identifier = jsonrpc.dumps(message.get("id"))
        channel = self.instance.channel
        if identifier not in self._asked or channel is None:
            return False
        self._asked.discard(identifier)
        channel.pass_on(message)
        if not self._asked:
            self._wait_for_client(patient=False)
        return True

    # ---- from the server ----

    def _ask(self, message: dict[str, Any], line: bytes) -> bool:
        """Give the client a request of the server's, if it can get one (D3, H8)."""
        greeted = self._hello is not None and self._hello.answer is not None
        if not greeted or len(self._asked) >= MAX_ASKED:
            return False
        method = message["method"]
        if method in QUESTIONS and QUESTIONS[method] not in self._features:
            return False  # which servers send all the same
        if method == "ping" and not self._hears:
            return False
        self._asked.add(jsonrpc.dumps(message["id"]))
        if method in QUESTIONS:
            self._wait_for_client(patient=True)
        self._deliver(line)
        return True

    def _wait_for_client(self, *, patient: bool) -> None:
        """The time of the open calls stands still while somebody is asked: it may be of any."""
        channel, session = self.instance.channel, self.session
        for call in session.calls.values() if session is not None else ():
            if channel is None or call.done or call.parked is patient:
                continue
            if patient:
                channel.park(call, PATIENCE)
            else:
                channel.go_on(call)

    def tools_changed(self) -> None:
        self._deliver(jsonrpc.dumps({"jsonrpc": "2.0", "method": TOOLS_CHANGED}))

    def _notified(self, message: dict[str, Any], line: bytes) -> None:
        if message["method"] == TOOLS_CHANGED:
            self._changes += 1
            self._listed.changed()
        if message["method"] == "notifications/cancelled":
            self._asked.discard(jsonrpc.dumps(params_of(message).get("requestId")))
            if not self._asked:
                self._wait_for_client(patient=False)
        self._deliver(line)

    @property
    def instance(self) -> Instance:
        """Keeps the process."""
        return self.gate.instance

    @property
    def _session(self) -> Session:
        if self.session is None:
            raise CallError(Cause.CRASHED, "the session has not been opened")
        return self.session

    @property
    def _channel(self) -> Channel:
        channel = self.instance.channel
        if channel is None:
            raise CallError(Cause.CRASHED, "the session's server has ended")
        return channel

    @property
    def _hears(self) -> bool:
        """Whether the client reads anything now."""
        session = self.session
        if session is None:
            return False
        return session.outbox.taken or any(call.streamable for call in session.calls.values())

    def _deliver(self, line: bytes) -> None:
        """On the stream of the only call in flight, else on the session's own (C5)."""
        session = self.session
        if session is None:
            if len(self._early) < MAX_EARLY:
                self._early.append(line)
            return
        calls = [call for call in session.calls.values() if call.streamable and not call.done]
        channel = self.instance.channel
        if len(calls) == 1 and channel is not None:
            channel.push(calls[0], line)
        else:
            session.outbox.push(line)

    def _finish_tools(self, message: dict[str, Any]) -> Finish:
        first = not params_of(message).get("cursor")
        return lambda answer: self._listed.passed(answer, first=first)
