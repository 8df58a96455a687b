"""From a session's request into the chain, with what the chain asks of the server's process."""

from typing import Any

from autobot_mcp_bridge.channels.instance import Instance
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.model.versions import era_of
from autobot_mcp_bridge.policy.asked import Asked
from autobot_mcp_bridge.policy.chain import Admission, Chain
from autobot_mcp_bridge.policy.descriptor import Descriptor
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.policy.who import who_of
from autobot_mcp_bridge.sessions.dialects import params_of
from autobot_mcp_bridge.sessions.listed import Listed


class Gate:
    """The chain of a server, before one of its processes.

    Attributes:
        instance: the process's keeper; set by whoever makes it.
    """

    def __init__(self, chain: Chain, listed: Listed, spec: ServerSpec) -> None:
        self.instance: Instance
        self.spec = spec
        self._chain = chain
        self._listed = listed

    async def admit(
        self, principal: Principal, session: str, message: dict[str, Any], known: frozenset[str]
    ) -> Admission:
        """Let a request through; its own params become what the server is to get.

        Raises:
            CallError: it is refused, and the server has not seen it.
        """
        return await self._chain.admit(self._asked(principal, session, message, known))

    def resumed(
        self, principal: Principal, message: dict[str, Any], known: frozenset[str]
    ) -> Admission:
        """As `admit`, for a retry that goes on with a call."""
        asked = self._asked(principal, "", message, known)
        admission = self._chain.resumed(asked)
        if asked.tool is not None:
            self._listed.refuse(asked.tool)
        return admission

    def _asked(
        self, principal: Principal, session: str, message: dict[str, Any], known: frozenset[str]
    ) -> Asked:
        params = params_of(message)
        if not params:  # none were sent, and a hook may put some in
            params = message["params"] = {}
        who = who_of(self.spec, principal, session)
        return Asked(who, message["method"], params, known, self._describe, self._check)

    async def _describe(self, tool: str) -> Descriptor | None:
        channel = await self.instance.ready()
        era = era_of(self.instance.hello or {})
        return await self._listed.descriptors.find(channel, era, tool)

    async def _check(self, tool: str) -> None:
        """Refuse a tool that the process does not list as it was accepted, where that counts."""
        self._listed.refuse(tool)
        if self._listed.holds:
            channel = await self.instance.ready()
            await self._listed.admit(channel, era_of(self.instance.hello or {}), tool)
