"""Strategies by name: the two that come along, and those of installed packages."""

from importlib.metadata import entry_points
from typing import Any

from autobot_mcp_bridge.policy.scopes.namespace import NamespaceScope
from autobot_mcp_bridge.policy.scopes.prefix import PrefixScope
from autobot_mcp_bridge.policy.scopes.strategy import ScopeStrategy

GROUP = "autobot_mcp_bridge.scopes"
_OURS: dict[str, type[ScopeStrategy]] = {"namespace": NamespaceScope, "prefix": PrefixScope}


class StrategyError(Exception):
    """There is no such strategy, or not with this configuration; `key` says which is wrong."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


def strategy_of(name: str, config: dict[str, Any]) -> ScopeStrategy:
    """The strategy, made with its configuration as keyword arguments.

    Raises:
        StrategyError: there is none.
    """
    made = _OURS.get(name) or _installed(name)
    try:
        found = made(**config)
    except Exception as error:
        # Of whatever kind: a strategy that cannot be made is no strategy.
        text = f"it is not what the strategy {name} takes"
        raise StrategyError("config", text) from error
    if not isinstance(found, ScopeStrategy):
        raise StrategyError("strategy", f"{name} is no ScopeStrategy")
    return found


def _installed(name: str) -> Any:
    found = entry_points(group=GROUP)
    if name not in found.names:
        known = ", ".join(sorted({*_OURS, *found.names}))
        raise StrategyError("strategy", f"allowed are {known}")
    try:
        return found[name].load()
    except Exception as error:
        # A package of somebody's: whatever it raises, the manifest is wrong, and nothing else.
        text = f"{name} cannot be imported: {type(error).__name__}"
        raise StrategyError("strategy", text) from error
