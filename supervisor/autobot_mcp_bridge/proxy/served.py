"""One server as the proxy serves it: its definition, process, conversations, tokens and counts."""

import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from autobot_mcp_bridge.channels.ends import resting
from autobot_mcp_bridge.channels.hooks import Hooks
from autobot_mcp_bridge.channels.instance import Instance
from autobot_mcp_bridge.config.load import Refused
from autobot_mcp_bridge.config.tokens import TokenRecord
from autobot_mcp_bridge.model.death import Death
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.host import HostLimits
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.states import State
from autobot_mcp_bridge.policy.chain import Chain
from autobot_mcp_bridge.policy.drift.drift import Drift
from autobot_mcp_bridge.policy.host import PolicyHost
from autobot_mcp_bridge.policy.keys import KeyTable
from autobot_mcp_bridge.policy.oauth import AccessTokens
from autobot_mcp_bridge.policy.principals import Principal, TokenIndex, principal_of
from autobot_mcp_bridge.proxy.counts import Counts
from autobot_mcp_bridge.runtimes.base import Command, Runtime
from autobot_mcp_bridge.sessions.conversations import Conversations
from autobot_mcp_bridge.sessions.isolated import IsolatedServer
from autobot_mcp_bridge.sessions.kept import KeptSession, KeptSessions
from autobot_mcp_bridge.sessions.listeners import Listeners
from autobot_mcp_bridge.sessions.session import SessionTable
from autobot_mcp_bridge.sessions.shared import SharedServer
from autobot_mcp_bridge.supervision.journal import Memory
from autobot_mcp_bridge.units.packages.store import package_of

_INSTANCE = "instance"
_COMMAND = "command"
# What keeps a server from being started, as a state; anything else passes by itself.
_REFUSED = {
    Cause.INSTALL_FAILED: State.INSTALL_FAILED,
    Cause.CREDENTIAL_MISSING: State.CREDENTIAL_MISSING,
    Cause.REFUSED: State.REFUSED,
    Cause.MASKED: State.MASKED,
    Cause.STOPPED: State.STOPPED,
}

log = logging.getLogger(__name__)
# Runs an instance for as long as it lives.
Keep = Callable[[Instance], None]
# Resolves a definition's command, or raises CallError.
Commands = Callable[[ServerSpec], Command]


class Served:
    """Wires the parts of one server together; it holds no rule of its own."""

    def __init__(
        self,
        spec: ServerSpec,
        tokens: TokenIndex,
        runtime: Runtime,
        commands: Commands,
        limits: HostLimits,
        memory: Memory,
        keep: Keep,
        policy: PolicyHost,
        access: AccessTokens | None = None,
        keys: KeyTable | None = None,
        drift: Drift | None = None,
    ) -> None:
        self.spec = spec
        self._keys = keys if keys is not None else KeyTable()
        self.drift = drift if drift is not None else Drift(spec.instance)
        self._chain = Chain(spec, policy, self.drift)
        self._access = access
        self.resource = access.resource(spec) if access is not None else None
        self.tokens = tokens
        self.refused: Refused | None = None
        self._runtime = runtime
        self._commands = commands
        self._limits = limits
        self._keep = keep
        self.counts = Counts()
        self._memory = memory
        self._kept: KeptSessions | None = KeptSessions(memory, spec.instance)
        sessions = SessionTable(limits, time.monotonic, self._kept)
        self._hooks = Hooks(
            started=self.counts.count_start,
            crashed=self._count_crash,
            dropped=self.counts.count_drop,
            changed=self._remember,
        )
        self.conversations = (
            self._isolated(sessions) if is_isolated(spec) else self._shared(sessions)
        )
        self.instance.recall(memory.items(_INSTANCE, spec.instance).get(""))
        self._command: object = memory.items(_COMMAND, spec.instance).get("")
        keep(self.instance)

    def _shared(self, sessions: SessionTable) -> Conversations:
        listeners = Listeners(self._limits.sessions_per_server, self._limits.sessions_per_token)
        shared = SharedServer(
            self.spec, sessions, listeners, self.counts.count_drop, self._memory, self._chain
        )
        hooks = replace(
            self._hooks,
            restored=shared.restored,
            adopted=shared.adopted,
            message=shared.notices.take,
        )
        self.instance = self._instance(hooks)
        shared.serve_with(self.instance)
        return shared

    def _isolated(self, sessions: SessionTable) -> Conversations:
        self.instance = self._instance(self._hooks)

        def slot() -> str:
            # Another for each start: the directory of the one before may still be being removed.
            return f"{self.spec.instance}-{secrets.token_hex(10)}"

        def make(hooks: Callable[[Hooks], Hooks]) -> Instance:
            made = self._instance(hooks(self._hooks), lead=self.instance, slot=slot)
            self._keep(made)
            return made

        return IsolatedServer(
            *(self.spec, sessions, self._limits, self.counts.count_drop, self.instance, make),
            chain=self._chain,
        )

    def _instance(
        self, hooks: Hooks, lead: Instance | None = None, slot: Callable[[], str] = str
    ) -> Instance:
        return Instance(
            self.spec,
            self._runtime,
            self._resolve,
            hooks,
            self._limits.calls_per_server,
            lead=lead,
            slot=slot,
        )

    def _count_crash(self, death: Death) -> None:
        self.counts.crashes[death.cause.value] += 1
        self.counts.between_crashes.happened(time.monotonic())
        self.instance.last_death = death  # of an isolated server's process as well

    def _remember(self) -> None:
        self._memory.put(_INSTANCE, self.spec.instance, "", self.instance.memo())

    def configure(self, spec: ServerSpec) -> None:
        """Put a changed definition to use; sessions go on."""
        if self._runtime.view(spec) != self._runtime.view(self.spec):
            self.conversations.forget()
            self._command = None  # of the process that goes anyway
        if spec.enabled and not self.spec.enabled:
            # It was not served: a stop of its unit was part of that, or means nothing any more.
            self.instance.allow()
        if not spec.enabled:
            self.conversations.suspend()
        self.spec = spec
        self.resource = self._access.resource(spec) if self._access is not None else None
        self._chain.configure(spec)
        self.conversations.configure(spec)
        self.instance.configure(spec)

    def judge(self, refused: Refused | None) -> None:
        """Take in why the files' definition is not in force; None: it is. What runs goes on."""
        if refused == self.refused:
            return
        self.refused = refused
        name = self.spec.instance
        text = "its definition is in force now"
        if refused is not None:
            what = "the one before stays in force" if refused.kept else "it is not served"
            text = f"its definition cannot be put to use, {what}: {refused.why}"
        log.log(
            logging.ERROR if refused is not None else logging.WARNING,
            "%s: %s",
            name,
            text,
            extra={"MCP_INSTANCE": name},
        )

    def stop(self) -> None:
        """Stop it until it is started again; isolated sessions end with their processes."""
        self.instance.stop()
        self.conversations.suspend()

    def start(self) -> None:
        """Let it run again; a shared server starts now."""
        if is_isolated(self.spec):
            self.instance.allow()
        else:
            self.instance.start()

    def follow(self) -> None:
        """Put to use that the same definition means another start now: an upgrade, a new secret.

        Also one that was made while no proxy ran.
        """
        before = self._command
        try:
            self._resolve(self.spec)
        except CallError:
            return  # what runs goes on until there is something to replace it with
        if before not in (None, self._command):
            self.conversations.forget()
            self.instance.renew()

    def refusal(self) -> CallError | None:
        """Why the next call would start nothing."""
        try:
            self._startable(self.spec)
        except CallError as error:
            return error
        return self._runtime.refusal(self.spec.instance)

    def _startable(self, spec: ServerSpec) -> Command:
        """The command, if there may be a start at all."""
        if self.refused is not None and not self.refused.kept:
            raise CallError(Cause.REFUSED, f"{spec.instance}: {self.refused.why}")
        return self._commands(spec)

    def _resolve(self, spec: ServerSpec) -> Command:
        """The command, which is remembered: a process is, or will be, started with it."""
        command = self._startable(spec)
        self.drift.package = package_of(command.argv)
        digest = _digest(command)
        if digest != self._command:
            self._command = digest
            self._memory.put(_COMMAND, spec.instance, "", digest)
        return command

    def admit(self, tokens: TokenIndex) -> None:
        """Put changed tokens to use; who is no longer let in loses its sessions (F7)."""
        self.tokens = tokens
        if self._kept is not None:
            self._restore(self._kept)
            self._kept = None
        self.sweep()

    def _restore(self, kept: KeptSessions) -> None:
        """Once: go on with the sessions of the proxy before whose tokens still count."""
        for session in kept.read():
            principal = self._caller(session)
            # An isolated session has ended with its process.
            if principal is None or is_isolated(self.spec) or not self.accepts(principal):
                kept.ended(session.id, session.subscriptions)
            else:
                self.conversations.sessions.restore(session, principal, self.counts.count_drop)

    def _caller(self, session: KeptSession) -> Principal | None:
        """Whose a session of the proxy before is; None for a credential that has gone."""
        if (grant := session.grant) is not None:
            return Principal(grant.subject, self.spec.instance, grant.expires, grant)
        if (shown := session.key) is None:
            return self.tokens.find(session.digest)
        key = self._keys.find(shown.key)
        beside = self.tokens.find(shown.token) if shown.token is not None else None
        if key is None or (shown.token is not None and beside is None):
            return None
        return principal_of(key, self.spec.instance, shown.project, beside)

    def sweep(self) -> None:
        """End the sessions that have expired, and sessions and calls whose token has."""
        self.conversations.sessions.expire()
        self.conversations.dismiss(self.accepts)

    def accepts(self, principal: Principal) -> bool:
        """Tell whether this caller would be let in now as well."""
        if (key := principal.key) is not None:
            token = principal.token
            return self._keys.holds(key) and (token is None or self.tokens.find(token) is not None)
        if principal.grant is None:
            return self.tokens.find(principal.digest) is not None
        if self._access is None or self.resource is None:
            return False
        return self._access.accepts(principal.grant, self.resource)


def is_isolated(spec: ServerSpec) -> bool:
    return spec.sessions == "isolated"


def _digest(command: Command) -> str:
    words = [*command.argv, *(f"{name}={text}" for name, text in sorted(command.env.items()))]
    if command.rotated:  # else as a proxy has written it that knew of no rotations
        words.append(f"\0{command.rotated}")
    return hashlib.sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()


def index_tokens(spec: ServerSpec, records: Iterable[TokenRecord]) -> TokenIndex:
    """The tokens of a server: those of its definition and those of tokens.d; both count."""
    principals = [Principal(digest, spec.instance) for digest in spec.tokens_sha256]
    principals += [Principal(record.sha256, spec.instance, record.expires) for record in records]
    return TokenIndex(principals, time.time)


def state_of(served: Served) -> tuple[State, str]:
    """The server's state and a sentence about it; a sleeping one may not be startable."""
    instance = served.instance
    death = instance.last_death
    detail = death.describe() if death is not None and not death.asked else ""
    state = instance.state
    if is_isolated(served.spec) and state in (State.SLEEPING, State.BROKEN):
        # What keeps no process is not told of each change of what counts for all.
        state = resting(served.spec, instance.breaker, stopped=False)
        if served.conversations.processes:
            state = State.READY
    if state is not State.SLEEPING:
        return state, detail
    refusal = served.refusal()
    if refusal is not None:
        why = str(refusal).removeprefix(f"{served.spec.instance}: ")
        return _REFUSED.get(refusal.cause, State.INSTALLING), why
    return State.SLEEPING, detail
