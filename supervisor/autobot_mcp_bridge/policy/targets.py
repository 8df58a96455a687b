"""Which tools, resources and prompts a request may name."""

from typing import Any

from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.policy.asked import Asked
from autobot_mcp_bridge.policy.methods import HANDSHAKE_REQUESTS, MODERN_REQUESTS
from autobot_mcp_bridge.policy.rules import Rules
from autobot_mcp_bridge.policy.tools import ToolRule

_BY_URI = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})
_KNOWN = HANDSHAKE_REQUESTS | MODERN_REQUESTS


def check_target(asked: Asked, tools: ToolRule, rules: Rules | None) -> None:
    """By names alone; what a tool says of itself is looked at later.

    A manifest of scoped-mcp's format knows tools: resources and prompts are denied under one unless
    it names them, and so is every method beyond those of the two eras but tasks.

    Raises:
        CallError: the request names what it may not.
    """
    method, params = asked.method, asked.params
    if method == "tools/call":
        name = params.get("name")
        if not tools.allows(name) or (rules is not None and not rules.allows(str(name))):
            raise CallError(Cause.TOOL_DENIED, f"Unknown tool: {name}")
    elif rules is None:
        return
    elif method in _BY_URI:
        _check_resource(params.get("uri"), rules)
    elif method == "prompts/get":
        _check_prompt(params.get("name"), rules)
    elif method == "completion/complete":
        reference = params.get("ref")
        said = reference if isinstance(reference, dict) else {}
        if said.get("type") == "ref/prompt":
            _check_prompt(said.get("name"), rules)
        else:
            _check_resource(said.get("uri"), rules)
    elif method == "subscriptions/listen":
        for uri in _wished(params):
            _check_resource(uri, rules)
    elif method not in _KNOWN and not method.startswith("tasks/"):
        raise CallError(Cause.METHOD_DENIED, f"method not found: {method}")


def _check_resource(uri: object, rules: Rules) -> None:
    if not isinstance(uri, str) or not rules.resources.match(uri):
        raise CallError(Cause.RESOURCE_DENIED, "the resource is not allowed, or not there")


def _check_prompt(name: object, rules: Rules) -> None:
    if not isinstance(name, str) or not rules.prompts.match(name):
        raise CallError(Cause.PROMPT_DENIED, "the prompt is not allowed, or not there")


def _wished(params: dict[str, Any]) -> list[Any]:
    """The resources that a listener wants to hear of (26 basic/patterns/subscriptions)."""
    wish = params.get("notifications")
    uris = wish.get("resourceSubscriptions") if isinstance(wish, dict) else None
    return uris if isinstance(uris, list) else []
