"""Network mode names: what the unit's own loopback leads to, and how programs are told of it."""

from collections.abc import Iterable, Mapping

from autobot_mcp_bridge.model.destinations import parse_entry
from autobot_mcp_bridge.model.server import ServerSpec

# As templates/mcp-bridge-egress@.socket has it, in the network namespace of the server alone.
PROXY = "http://127.0.0.1:3128"
NO_PROXY = "localhost,127.0.0.1,::1"


def has_names(spec: ServerSpec) -> bool:
    return spec.network.mode == "names"


def variables(spec: ServerSpec) -> Mapping[str, str]:
    """What curl(1), Python, npm, pip and uv read, and node where it is told to read it.

    node: NODE_USE_ENV_PROXY, 22.21 and 24.5 or newer (nodejs.org/api/cli.html).
    """
    if not has_names(spec):
        return {}
    proxy = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), PROXY)
    return {**proxy, "NO_PROXY": NO_PROXY, "no_proxy": NO_PROXY, "NODE_USE_ENV_PROXY": "1"}


def allowed(specs: Iterable[ServerSpec]) -> dict[str, tuple[str, ...]]:
    """Instance to its entries, for the egress proxy."""
    return {spec.instance: spec.network.allow for spec in specs if spec.enabled and has_names(spec)}


def sentence(spec: ServerSpec) -> str:
    """What is let through, for people."""
    hosts = ", ".join(map(str, map(parse_entry, spec.network.allow)))
    return f"network names: {hosts}, by TLS through the egress proxy, and nothing else"
