"""What the chains of all servers share: manifests, counters, threads for code of others."""

import logging

from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.rates import Rate, rate_of
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.policy.aside import Aside
from autobot_mcp_bridge.policy.filters.patterns import PatternError
from autobot_mcp_bridge.policy.limits.counter import Counter
from autobot_mcp_bridge.policy.limits.shared import SharedCounter
from autobot_mcp_bridge.policy.limits.window import MemoryCounter
from autobot_mcp_bridge.policy.manifest.load import Manifests
from autobot_mcp_bridge.policy.rules import Rules, rules_for
from autobot_mcp_bridge.policy.scopes.find import StrategyError

log = logging.getLogger(__name__)


class PolicyHost:
    """One for all servers of a proxy.

    Attributes:
        manifests: those in force; `put` replaces them.
        counter: where calls are counted.
        tenant_rate: of the calls of each tenant.
    """

    def __init__(self, settings: HostSettings, counter: Counter | None = None) -> None:
        self.manifests = Manifests()
        self.counter = counter or _counter(settings)
        self.aside = Aside()
        text = settings.rates.tenant
        self.tenant_rate: Rate | None = rate_of(text) if text is not None else None
        self._rules: dict[tuple[str, str], Rules] = {}

    def put(self, manifests: Manifests) -> None:
        """Put other manifests to use, from the next request on."""
        self.manifests = manifests
        self._rules = {}

    def rules(self, agent_type: str | None, spec: ServerSpec) -> Rules | None:
        """What a manifest says of this server; None where none speaks for the caller.

        Where there is a manifests.d, an agent type without a manifest may do nothing.
        """
        if agent_type is None or not self.manifests.present:
            return None
        key = agent_type, spec.instance
        found = self._rules.get(key)
        if found is None:
            found = self._rules[key] = self._made(agent_type, spec)
        return found

    def _made(self, agent_type: str, spec: ServerSpec) -> Rules:
        checked = self.manifests.by_type.get(agent_type)
        try:
            return rules_for(checked, agent_type, spec.name, spec.instance)
        except (PatternError, StrategyError) as error:
            # It was right when it was loaded; a strategy may have changed its mind.
            said = f"{spec.instance}: the manifest of {agent_type} cannot be used: {error}"
            log.warning("%s", said, extra={"MCP_INSTANCE": spec.instance})
            return rules_for(None, agent_type, spec.name, spec.instance)

    async def close(self) -> None:
        await self.counter.close()


def _counter(settings: HostSettings) -> Counter:
    url = settings.rates.redis
    return SharedCounter(url) if url is not None else MemoryCounter()
