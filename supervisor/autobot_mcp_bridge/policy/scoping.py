"""A tool's scoped arguments, put to their strategies (SM-35)."""

from functools import partial
from typing import Any

from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.policy.aside import Aside, AsideError
from autobot_mcp_bridge.policy.rules import Rules, Scoped
from autobot_mcp_bridge.policy.scopes.strategy import AgentContext, ScopeViolationError
from autobot_mcp_bridge.policy.who import Who

# Seconds for all scoped values of one call: a strategy may look at a disk or ask somebody.
DEADLINE = 2.0
# Scoped values in one call.
MOST_VALUES = 1000
LONGEST_TEXT = 300


async def enforce(
    rules: Rules, who: Who, tool: str, arguments: dict[str, Any], aside: Aside
) -> dict[str, Any]:
    """The arguments as the server gets them.

    A tool that is called with none of the arguments that a scope names is refused: what it would
    take instead is nobody's.

    Raises:
        CallError: one lies outside its scope, or that cannot be found out.
    """
    scopes = [scope for scope in rules.scopes if scope.tools.match(tool)]
    if not scopes:
        return arguments
    if who.agent_id is None:
        raise _violation("the caller is no agent, and has no scope")
    agent = AgentContext(who.agent_id, rules.agent_type)
    try:
        return await aside.run(DEADLINE, partial(_applied, scopes, agent, arguments))
    except ScopeViolationError as error:
        raise _violation(str(error)[:LONGEST_TEXT]) from None
    except AsideError as error:
        raise _violation(f"the scope cannot be checked: {error}") from None
    except Exception as error:
        # A strategy of somebody's: whatever it raises, nothing has been seen to be inside.
        raise _violation(f"the scope cannot be checked: {type(error).__name__}") from error


def _applied(
    scopes: list[Scoped], agent: AgentContext, arguments: dict[str, Any]
) -> dict[str, Any]:
    found = dict(arguments)
    for scope in scopes:
        named = [name for name in scope.arguments if name in arguments]
        if not named:
            raise ScopeViolationError(f"one of {', '.join(scope.arguments)} must be given")
        for name in named:
            found[name] = _one_applied(scope, agent, name, found[name])
    return found


def _one_applied(scope: Scoped, agent: AgentContext, name: str, value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in values) or len(values) > MOST_VALUES:
        raise ScopeViolationError(f"{name} must be text, or a list of at most {MOST_VALUES}")
    applied = [scope.strategy.apply(each, agent) for each in values]
    for each in applied:
        scope.strategy.enforce(each, agent)
    return applied if isinstance(value, list) else applied[0]


def _violation(text: str) -> CallError:
    return CallError(Cause.SCOPE_VIOLATION, text)
