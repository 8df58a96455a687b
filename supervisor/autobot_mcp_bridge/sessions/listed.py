"""What one process lists as its tools: the one place where lists pass, and where calls are judged."""

from collections.abc import Callable
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.versions import Era
from autobot_mcp_bridge.policy.drift.baseline import MOST_TOOLS
from autobot_mcp_bridge.policy.drift.descriptor import Described, tools_of
from autobot_mcp_bridge.policy.drift.drift import Drift
from autobot_mcp_bridge.policy.tools import ToolRule
from autobot_mcp_bridge.sessions.descriptors import Descriptors, Look
from autobot_mcp_bridge.sessions.pages import MAX_LISTED, LookError


class Listed:
    """The tools of one process after another: allow-list, and drift.

    Where tools are held back, the proxy reads the whole list of each process itself before anybody
    sees or calls one of them, and again when the process says that it has changed.

    Attributes:
        rule: of the definition, set by whoever configures it.
    """

    def __init__(self, drift: Drift, rule: ToolRule, changes: Callable[[], int]) -> None:
        """`changes` is another number once the process says that its tools are others."""
        self.rule = rule
        self.descriptors = Descriptors(changes)
        self._drift = drift
        self._digests: dict[str, str] = {}  # as listed last; of several, one that is not accepted
        self._stands = False  # nothing has been heard since of other tools
        self._look: Look | None = None  # that has been taken in

    def changed(self) -> None:
        """The process says that its tools are others, or will be another one."""
        self._stands = False

    @property
    def holds(self) -> bool:
        """Whether tools are held back."""
        return self._drift.holds

    # ---- lists ----

    def passed(self, answer: Answer, *, first: bool) -> Answer:
        """A page of a process's list, as a client may have it.

        Raises:
            CallError: tools are held back, and it cannot be looked at.
        """
        if answer.is_error or not self._drift.watches:
            return self.known(answer)
        try:
            if len(answer.line) > MAX_LISTED:
                text = f"a page of its list of tools has more than {MAX_LISTED >> 20} MiB"
                raise CallError(Cause.ANSWER_TOO_LARGE, text)
            result = answer.parsed()["result"]
        except CallError:
            if self._drift.holds:
                raise
            return self.known(answer)
        whole = first and not result.get("nextCursor")
        self._take(tuple(tools_of(result)), first=first, whole=whole)
        return self.known(answer)

    def known(self, answer: Answer) -> Answer:
        """The same of a page that has been looked at before."""
        if answer.is_error or (self.rule.everything and not self._drift.holds):
            return answer
        message = answer.parsed()
        result = self.rule.listed(message["result"])
        if self._drift.holds:
            result = self._without_held(result)
        # Written anew: of a key that stands twice, its reader would see what nobody looked at.
        return jsonrpc.rebuilt({**message, "result": result})

    def _without_held(self, result: dict[str, Any]) -> dict[str, Any]:
        listed = [*tools_of(result)]
        held = {tool.name for tool in listed if not self._drift.accepts(tool.name, tool.digest)}
        passing = {tool.name for tool in listed if self._is_accepted(tool.name)} - held
        tools = result.get("tools")
        kept = [
            tool
            for tool in (tools if isinstance(tools, list) else ())
            if isinstance(tool, dict) and tool.get("name") in passing
        ]
        return {**result, "tools": kept}

    def _take(self, tools: tuple[Described, ...], *, first: bool, whole: bool) -> None:
        self._drift.see(tools, first=first, whole=whole)
        if not self._drift.holds:
            return
        self._stands = True
        if whole:
            self._digests.clear()
        fresh: dict[str, str] = {}
        for name, digest, _ in tools:
            known = fresh.get(name) or (self._digests.get(name) if not first else None)
            if known is None or self._drift.accepts(name, known):
                fresh[name] = digest
        for name, digest in fresh.items():
            if name in self._digests or len(self._digests) < MOST_TOOLS:
                self._digests[name] = digest

    def _is_accepted(self, name: str) -> bool:
        digest = self._digests.get(name)
        return digest is not None and self._drift.accepts(name, digest)

    # ---- calls ----

    def refuse(self, name: str) -> None:
        """Refuse a call that is not to be made, as far as is known without asking the server.

        Raises:
            CallError: TOOL_HELD.
        """
        if not self._drift.holds:
            return
        if (digest := self._digests.get(name)) is None:
            self._drift.refuse_known(name)
        elif self._stands and not self._drift.accepts(name, digest):
            raise self._drift.held(name)

    async def admit(self, channel: Channel, era: Era, name: str | None = None) -> None:
        """Let a list, or a call of this tool, pass by what this very process lists.

        At once where nothing is held back.

        Raises:
            CallError: TOOL_DENIED, TOOL_HELD; or the process does not give its list, and the next
                request tries again.
        """
        if not self._drift.holds:
            return
        try:
            look = await self.descriptors.look(channel, era)
        except LookError as error:
            text = f"no tool can be looked at, and none is listed or called: {error}"
            raise CallError(Cause.TOOL_HELD, text) from None
        if look is not self._look:
            self._look = look
            self._take(tuple(tools_of({"tools": look.tools})), first=True, whole=True)
        if name is not None:
            self._check(name)

    def _check(self, name: str) -> None:
        if self._is_accepted(name):
            return
        if name in self._digests or name in self._drift.baseline.differing:
            raise self._drift.held(name)
        raise CallError(Cause.TOOL_DENIED, f"Unknown tool: {name}")
