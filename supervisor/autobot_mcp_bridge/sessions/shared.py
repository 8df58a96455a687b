"""A shared server: one process for all its sessions and all modern requests.

The proxy initializes the process once, offers it no client features, and answers each client's
initialize from that. Sessions outlive the process: what they had subscribed to is restored in the
next one. No call is ever sent twice.
"""

import hashlib
import time
from collections.abc import Callable
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.channel import Call, Channel
from autobot_mcp_bridge.channels.instance import Instance
from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.budget import Budget
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.versions import (
    META_CAPABILITIES,
    META_CLIENT,
    META_LOG_LEVEL,
    META_SERVER,
    META_VERSION,
    SUPPORTED,
    negotiate,
)
from autobot_mcp_bridge.policy.methods import (
    HANDSHAKE_REQUESTS,
    MODERN_REQUESTS,
    REMOVED_IN_MODERN,
    allowed,
)
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.policy.tools import ToolRule
from autobot_mcp_bridge.sessions.exchange import Exchange, Finish, encode_modern
from autobot_mcp_bridge.sessions.session import (
    LEVELS,
    MAX_SUBSCRIPTIONS,
    MAX_URI,
    Session,
    SessionTable,
)
from autobot_mcp_bridge.sessions.tasks import TaskOwners
from autobot_mcp_bridge.supervision.journal import Memory

# Deadline of the proxy's own requests that restore sessions in a new process.
RESTORE_CALL = 3.0
# A notification is given to at most so many sessions a second (and at once): a delivery costs about
# a microsecond, and no server may take more than some percent of the loop with them.
DELIVERIES = 20_000
TOOLS_CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
_TOOLS = "tools"
# Capabilities that need a stream which modern clients cannot open here.
STREAM_FLAGS = ("listChanged", "subscribe")


class SharedServer:
    """Conversations with one shared server."""

    def __init__(
        self,
        spec: ServerSpec,
        sessions: SessionTable,
        on_dropped: Callable[[str], None],
        memory: Memory,
    ) -> None:
        self.sessions = sessions
        self.instance: Instance  # set by whoever builds both
        self._on_dropped = on_dropped
        self._tools_list: Answer | None = None  # the first page, as the server gave it
        self._tools_stale = False  # it is of a definition that no longer stands
        self._memory = memory
        # Of the list that sessions may know, also from a proxy before; "" when they know none.
        self._tools_digest = str(memory.items(_TOOLS, spec.instance).get("", ""))
        self._server_meta = b""
        self._tasks = TaskOwners(memory, spec.instance)
        self._deliveries = Budget(DELIVERIES, DELIVERIES, time.monotonic())
        self.configure(spec)

    def configure(self, spec: ServerSpec) -> None:
        self.spec = spec
        self.tools = ToolRule(spec.tools)

    def forget(self) -> None:
        """The definition's process changed: what was cached of it counts no more."""
        self._tools_stale = True
        self._server_meta = b""

    # ---- the two eras' first words ----

    async def hello(self) -> dict[str, Any]:
        """The server's initialize result, from its last process while it sleeps.

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
        self, principal: Principal, params: dict[str, Any]
    ) -> tuple[Session, dict[str, Any]]:
        """Open a session and answer its initialize; no capability is invented.

        Raises:
            CallError: the server cannot be started, or there are too many sessions.
        """
        hello = await self.hello()
        version = negotiate(params.get("protocolVersion"), hello["protocolVersion"])
        session = self.sessions.open(principal, version, self._on_dropped)
        return session, {**hello, "protocolVersion": version}

    async def discover(self) -> dict[str, Any]:
        """The answer to server/discover, made from the initialize result (G5)."""
        hello = await self.hello()
        capabilities = {
            name: {key: flag for key, flag in value.items() if key not in STREAM_FLAGS}
            for name, value in hello["capabilities"].items()
            if isinstance(value, dict) and name not in ("logging", "tasks")
        }
        result: dict[str, Any] = {
            "resultType": "complete",
            "supportedVersions": list(SUPPORTED),
            "capabilities": capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {META_SERVER: hello.get("serverInfo", {})},
        }
        if isinstance(hello.get("instructions"), str):
            result["instructions"] = hello["instructions"]
        return result

    # ---- requests ----

    async def begin(
        self, session: Session, message: dict[str, Any], client_id: bytes, *, streamable: bool
    ) -> Exchange | bytes:
        """Send a handshake client's request on; or give its answer at once.

        Raises:
            CallError: it is denied, or there is nobody to answer it.
        """
        method = message["method"]
        if method == "ping":
            return jsonrpc.result_body(client_id, {})
        if not allowed(method, HANDSHAKE_REQUESTS, self.spec.methods.allow):
            raise CallError(Cause.METHOD_DENIED, f"method not found: {method}")
        _check_id(session, client_id)
        params = _params(message)
        finish: Finish | None = None
        match method:
            case "tools/list":
                if (cached := self._cached_tools(params)) is not None:
                    return cached.encode(client_id)
                finish = self._finish_tools(params)
            case "tools/call":
                self._check_tool(params)
                finish = self._finish_task(session.principal, params)
            case "logging/setLevel":
                finish = self._finish_level(session, message, params)
            case "resources/subscribe":
                finish = self._finish_subscribe(session, params)
            case "resources/unsubscribe":
                if self._still_subscribed(session, params.get("uri")):
                    return jsonrpc.result_body(client_id, {})
            case _ if method.startswith("tasks/"):
                finish = self._task(session.principal, method, params)
        channel = await self._ready(session, client_id)
        call = channel.request(message, self.spec.timeouts.call, session)
        call.streamable = streamable
        return Exchange(channel, call, client_id, method, session=session, finish=finish)

    async def begin_modern(
        self, principal: Principal, message: dict[str, Any], client_id: bytes, *, streamable: bool
    ) -> Exchange | bytes:
        """Send a 2026-07-28 request on, in the words of the handshake era.

        Raises:
            CallError: as `begin`.
        """
        method = message["method"]
        if method in REMOVED_IN_MODERN or not allowed(
            method, MODERN_REQUESTS, self.spec.methods.allow
        ):
            raise CallError(Cause.METHOD_DENIED, f"method not found: {method}")
        params = _params(message)
        if method == "server/discover":
            return jsonrpc.result_body(client_id, await self.discover())
        finish: Finish | None = None
        if method == "tools/call":
            self._check_tool(params)
            finish = self._finish_task(principal, params)
        elif method == "tools/list":
            if (cached := self._cached_tools(params)) is not None:
                return encode_modern(cached, client_id, method, self._meta())[1]
            finish = self._finish_tools(params)
        elif method.startswith("tasks/"):
            finish = self._task(principal, method, params)
        _strip_modern_meta(params)
        channel = await self.instance.ready()
        call = channel.request(message, self.spec.timeouts.call, principal)
        call.streamable = streamable
        return Exchange(channel, call, client_id, method, finish=finish, server_meta=self._meta())

    def cancel(self, session: Session, params: dict[str, Any]) -> None:
        """A client's notifications/cancelled: only for its own open call (D2)."""
        client_id = jsonrpc.dumps(params.get("requestId"))
        session.waiting.discard(client_id)  # of a call that no server has seen yet
        call = session.calls.get(client_id)
        channel = self.instance.channel
        if call is not None and channel is not None:
            channel.cancel(call, str(params.get("reason") or "the client cancelled it"))

    async def _ready(self, session: Session, client_id: bytes) -> Channel:
        """The channel for a call, which can be cancelled while its server starts."""
        session.waiting.add(client_id)
        try:
            channel = await self.instance.ready()
            if client_id not in session.waiting or session not in self.sessions:
                raise CallError(Cause.CANCELLED, "the call was cancelled before it was made")
            return channel
        finally:
            session.waiting.discard(client_id)

    def dismiss(self, is_valid: Callable[[Principal], bool]) -> None:
        """End the sessions and open calls of whoever is no longer let in (F7)."""
        self.sessions.end_where(lambda session: not is_valid(session.principal))
        channel = self.instance.channel
        for call in list(channel.pending.values()) if channel is not None else ():
            owner = call.owner.principal if isinstance(call.owner, Session) else call.owner
            if channel is not None and isinstance(owner, Principal) and not is_valid(owner):
                channel.cancel(call, "its token is no longer valid")

    def _still_subscribed(self, session: Session, uri: object) -> bool:
        """End a session's own subscription; whether others hold one to the same."""
        if not isinstance(uri, str):
            return False
        session.subscriptions.discard(uri)
        self.sessions.kept.unsubscribed(session.id, uri)
        return any(uri in other.subscriptions for other in self.sessions)

    def _check_tool(self, params: dict[str, Any]) -> None:
        name = params.get("name")
        if not self.tools.allows(name):
            raise CallError(Cause.TOOL_DENIED, f"Unknown tool: {name}")

    def _meta(self) -> bytes:
        if not self._server_meta and self.instance.hello is not None:
            info = jsonrpc.dumps({META_SERVER: self.instance.hello.get("serverInfo", {})})
            self._server_meta = b'"_meta":' + info + b","
        return self._server_meta

    # ---- lists ----

    def _cached_tools(self, params: dict[str, Any]) -> Answer | None:
        """The list of a server that sleeps, so that asking does not wake it (A15)."""
        if self._tools_list is None or self._tools_stale or params.get("cursor"):
            return None
        if self.instance.channel is not None:
            return None
        self.instance.check_startable()
        return self._filtered(self._tools_list)

    def _finish_tools(self, params: dict[str, Any]) -> Finish:
        first_page = not params.get("cursor")

        def finish(answer: Answer) -> Answer:
            if answer.is_error:
                return answer
            if first_page:
                self._learn_tools(answer)
            return self._filtered(answer)

        return finish

    def _learn_tools(self, answer: Answer) -> None:
        old, self._tools_list = self._tools_list, answer
        self._tools_stale = False
        if old is None or old.encode(b"0") != answer.encode(b"0"):
            self._tools_digest = _digest(answer)
            self._memory.put(_TOOLS, self.spec.instance, "", self._tools_digest)

    def _filtered(self, answer: Answer) -> Answer:
        if self.tools.everything:
            return answer
        message = answer.parsed()
        return jsonrpc.rebuilt({**message, "result": self.tools.listed(message["result"])})

    # ---- tasks ----

    def _finish_task(self, principal: Principal, params: dict[str, Any]) -> Finish | None:
        if "task" not in params:
            return None
        return lambda answer: self._tasks.learn(principal, answer)

    def _task(self, principal: Principal, method: str, params: dict[str, Any]) -> Finish | None:
        if method == "tasks/list":
            return lambda answer: self._tasks.own(principal, answer)
        self._tasks.check(principal, params)
        return None

    # ---- what the server says by itself ----

    def notified(self, message: dict[str, Any], line: bytes) -> None:
        """Give a notification that names no request to those whom it concerns (C2, C5).

        They get `line` as the server wrote it.
        """
        params = _params(message)
        match message["method"]:
            case "notifications/tools/list_changed":
                self._tools_list = None
                self._tools_digest = ""
                self._memory.drop(_TOOLS, self.spec.instance, "")
                self._deliver(line, list(self.sessions))
            case "notifications/resources/list_changed" | "notifications/prompts/list_changed":
                self._deliver(line, list(self.sessions))
            case "notifications/resources/updated":
                uri = params.get("uri")
                if isinstance(uri, str):
                    self._deliver(line, [s for s in self.sessions if uri in s.subscriptions])
            case "notifications/message":
                level = params.get("level")
                self._deliver(line, [s for s in self._concerned() if s.wants_level(level)])
            case "notifications/tasks/status":
                owner = self._tasks.owner(params.get("taskId"))
                self._deliver(line, [s for s in self.sessions if s.principal.digest == owner])
            case "notifications/cancelled":
                self._on_dropped("cancelled")  # of a request that we answered ourselves
            case _:
                self._deliver(line, self._concerned())

    def _concerned(self) -> list[Session]:
        """Whom a message may concern: never guessed between several calls, or several tokens."""
        channel = self.instance.channel
        owners = {call.owner for call in channel.pending.values()} if channel is not None else set()
        if not owners and len({session.principal.digest for session in self.sessions}) <= 1:
            return list(self.sessions)
        if len(owners) == 1 and isinstance(owner := owners.pop(), Session):
            return [owner]
        self._on_dropped("ambiguous")
        return []

    def _deliver(self, line: bytes, sessions: list[Session]) -> None:
        if sessions and not self._deliveries.take(time.monotonic(), len(sessions)):
            self._on_dropped("flood")
            return
        channel = self.instance.channel
        for session in sessions:
            calls = [call for call in session.calls.values() if call.streamable and not call.done]
            if len(calls) == 1 and channel is not None:
                channel.push(calls[0], line)
            else:
                session.outbox.push(line)

    # ---- a new process ----

    async def restored(self, channel: Channel) -> None:
        """Bring a new process to where the sessions left the last one."""
        calls: list[Call] = []
        levels = [session.level for session in self.sessions if session.level is not None]
        if levels:
            calls.append(
                _ask(channel, "logging/setLevel", {"level": min(levels, key=LEVELS.index)})
            )
        uris = sorted(set().union(*(session.subscriptions for session in self.sessions)))
        calls += [_ask(channel, "resources/subscribe", {"uri": uri}) for uri in uris]
        tools = _ask(channel, "tools/list", {}) if self._tools_digest else None
        for call in calls:
            await call.result()
        if tools is None or not self._tools_digest:
            return
        answer = await tools.result()
        if answer.is_error:
            return
        differs = _digest(answer) != self._tools_digest
        self._learn_tools(answer)
        if differs:
            self._deliver(TOOLS_CHANGED, list(self.sessions))

    def _finish_level(
        self, session: Session, message: dict[str, Any], params: dict[str, Any]
    ) -> Finish | None:
        """One process has one level: the most verbose that any session wants."""
        wanted = params.get("level")
        if wanted not in LEVELS:
            return None
        others = [other.level for other in self.sessions if other is not session and other.level]
        message["params"] = {**params, "level": min([wanted, *others], key=LEVELS.index)}

        def finish(answer: Answer) -> Answer:
            if not answer.is_error:
                session.level = wanted
                if session in self.sessions:
                    self.sessions.kept.write(session)
            return answer

        return finish

    def _finish_subscribe(self, session: Session, params: dict[str, Any]) -> Finish | None:
        uri = params.get("uri")
        if not isinstance(uri, str):
            return None
        if len(uri) > MAX_URI:
            raise CallError(Cause.BAD_TEXT, f"uri: at most {MAX_URI} characters")
        if len(session.subscriptions) >= MAX_SUBSCRIPTIONS:
            raise CallError(Cause.QUEUE_FULL, "the session has too many subscriptions")

        def finish(answer: Answer) -> Answer:
            if not answer.is_error and session in self.sessions:
                session.subscriptions.add(uri)
                self.sessions.kept.subscribed(session, uri)
            return answer

        return finish


def _digest(answer: Answer) -> str:
    return hashlib.sha256(answer.encode(b"0")).hexdigest()


def _params(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _check_id(session: Session, client_id: bytes) -> None:
    if client_id in session.calls or client_id in session.waiting:
        raise CallError(Cause.DUPLICATE_ID, "this id is in flight already")


def _strip_modern_meta(params: dict[str, Any]) -> None:
    """Take out what belongs to the modern era: some servers refuse a mix (PROTOCOL section 1)."""
    meta = params.get("_meta")
    if isinstance(meta, dict):
        for key in (META_VERSION, META_CAPABILITIES, META_CLIENT, META_LOG_LEVEL):
            meta.pop(key, None)
        if not meta:
            del params["_meta"]


def _ask(channel: Channel, method: str, params: dict[str, Any]) -> Call:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return channel.request(message, RESTORE_CALL)
