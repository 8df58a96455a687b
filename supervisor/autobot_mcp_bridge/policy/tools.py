"""Which tools a server's clients see and may call: one rule for listing and calling (NV-12)."""

from typing import Any

from autobot_mcp_bridge.model.server import Tools
from autobot_mcp_bridge.policy.globs import Globs


class ToolRule:
    """The compiled allow and deny globs of one server; `deny` wins."""

    def __init__(self, tools: Tools) -> None:
        self._allow = Globs(tools.allow)
        self._deny = Globs(tools.deny)
        self.everything = "*" in tools.allow and not tools.deny

    def allows(self, name: object) -> bool:
        """Tell whether the tool of exactly this name may be listed and called."""
        if not isinstance(name, str):
            return False
        if self.everything:
            return True
        return self._allow.match(name) and not self._deny.match(name)

    def listed(self, result: dict[str, Any]) -> dict[str, Any]:
        """A tools/list result without the tools that may not be called; the cursor stays."""
        tools = result.get("tools")
        if self.everything or not isinstance(tools, list):
            return result
        kept = [tool for tool in tools if isinstance(tool, dict) and self.allows(tool.get("name"))]
        return {**result, "tools": kept}
