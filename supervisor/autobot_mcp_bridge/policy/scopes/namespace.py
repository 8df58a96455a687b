"""Keys with the agent's name before them: `{agent_id}:{key}`."""

from autobot_mcp_bridge.policy.scopes.strategy import (
    AgentContext,
    ScopeStrategy,
    ScopeViolationError,
)


class NamespaceScope(ScopeStrategy):
    def apply(self, value: str, agent_ctx: AgentContext) -> str:
        return f"{agent_ctx.agent_id}:{value}"

    def enforce(self, value: str, agent_ctx: AgentContext) -> None:
        # No agent's id holds a colon: none is the beginning of another's prefix.
        if not value.startswith(f"{agent_ctx.agent_id}:"):
            raise ScopeViolationError(f"Key {value!r} is outside the agent scope")
