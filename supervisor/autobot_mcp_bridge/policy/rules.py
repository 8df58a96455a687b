"""What holds for the callers of one server that are of one agent type, compiled once."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from autobot_mcp_bridge.model.rates import Rate, rate_of
from autobot_mcp_bridge.policy.descriptor import is_read_only
from autobot_mcp_bridge.policy.filters.arguments import ArgumentFilters
from autobot_mcp_bridge.policy.filters.responses import ResponseFilters
from autobot_mcp_bridge.policy.globs import ByGlob, Globs, scoped_names
from autobot_mcp_bridge.policy.manifest.check import Checked
from autobot_mcp_bridge.policy.manifest.model import Scope
from autobot_mcp_bridge.policy.scopes.find import strategy_of
from autobot_mcp_bridge.policy.scopes.strategy import ScopeStrategy

# What a caller of a server that its manifest does not name sees of it: nothing.
_NOTHING = Globs(())
_EVERYTHING = Globs(("*",))


@dataclass(frozen=True, slots=True)
class Scoped:
    """Arguments that a strategy is asked about."""

    tools: Globs
    arguments: tuple[str, ...]
    strategy: ScopeStrategy


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """What a manifest says of one server.

    Attributes:
        module: what the manifest calls the server; tools are `MODULE_TOOL` in its globs.
        agent_type: whose manifest it is.
        read_only: only tools that say so of themselves (`annotations.readOnlyHint`).
        most_binary: bytes of one binary block; 0 for any number.
    """

    module: str
    agent_type: str
    allow: Globs = _NOTHING
    deny: Globs = _NOTHING
    resources: Globs = _NOTHING
    prompts: Globs = _NOTHING
    read_only: bool = False
    scopes: tuple[Scoped, ...] = ()
    arguments: ArgumentFilters | None = None
    responses: ResponseFilters | None = None
    most_binary: int = 0
    rate: Rate | None = None
    by_tool: ByGlob[Rate] = field(default_factory=lambda: ByGlob({}))

    def allows(self, tool: str) -> bool:
        """By its name alone; whether it may be called in `mode: read` says its descriptor."""
        return self.allow.match(tool) and not self.deny.match(tool)

    def shows(self, descriptor: Any) -> bool:
        """Tell whether a tool is listed, and so may be called."""
        if not isinstance(descriptor, dict) or not isinstance(name := descriptor.get("name"), str):
            return False
        return self.allows(name) and (not self.read_only or is_read_only(descriptor))

    def rate_of(self, tool: str) -> tuple[str, Rate] | None:
        """The rate of a tool, and the glob whose tools share it."""
        return self.by_tool.find(scoped_names(self.module, tool))


def rules_for(checked: Checked | None, agent_type: str, server: str, instance: str) -> Rules:
    """What holds on this server; without a manifest, or a module of its name in it, nothing may."""
    proxy = checked.proxies.get(server) if checked is not None else None
    if checked is None or proxy is None:
        return Rules(server, agent_type)
    module, config = proxy
    manifest = checked.manifest
    most = config.max_binary_bytes
    rates = manifest.rate_limits
    filters, answers = manifest.argument_filters, manifest.response_filters
    return Rules(
        module=server,
        agent_type=agent_type,
        allow=Globs(config.tool_allowlist) if config.tool_allowlist else _EVERYTHING,
        deny=Globs(config.tool_denylist),
        resources=Globs(config.resource_allowlist),
        prompts=Globs(config.prompt_allowlist),
        read_only=module.mode == "read",
        scopes=tuple(_scoped(config.scopes)),
        arguments=ArgumentFilters(filters) if filters else None,
        responses=ResponseFilters(answers, instance) if answers else None,
        most_binary=most if most is not None else manifest.content_limits.max_binary_bytes,
        rate=rate_of(rates.global_) if rates.global_ is not None else None,
        by_tool=ByGlob({glob: rate_of(text) for glob, text in rates.per_tool.items()}),
    )


def _scoped(scopes: Iterable[Scope]) -> Iterable[Scoped]:
    for scope in scopes:
        strategy = strategy_of(scope.strategy, scope.config)
        yield Scoped(Globs(scope.tools), scope.arguments, strategy)
