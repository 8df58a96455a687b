"""Which resources an agent may name in its arguments; what a custom strategy imports.

    from autobot_mcp_bridge.policy.scopes import AgentContext, ScopeStrategy, ScopeViolation

A strategy is found by the entry point group `autobot_mcp_bridge.scopes`.
"""

from autobot_mcp_bridge.policy.scopes.strategy import (
    AgentContext,
    ScopeStrategy,
    ScopeViolation,
)

__all__ = ["AgentContext", "ScopeStrategy", "ScopeViolation"]
