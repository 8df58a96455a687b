"""Which tools a server's clients see and may call: one rule for listing and calling (NV-12)."""

from fnmatch import fnmatchcase
from typing import Any

from autobot_mcp_bridge.model.server import Tools


class ToolRule:
    """The compiled allow and deny globs of one server; `deny` wins."""

    def __init__(self, tools: Tools) -> None:
        self._allow = tools.allow
        self._deny = tools.deny
        self.everything = "*" in tools.allow and not tools.deny

    def allows(self, name: object) -> bool:
        """Tell whether the tool of exactly this name may be listed and called."""
        if not isinstance(name, str):
            return False
        if self.everything:
            return True
        return _matches(name, self._allow) and not _matches(name, self._deny)

    def listed(self, result: dict[str, Any]) -> dict[str, Any]:
        """A tools/list result without the tools that may not be called; the cursor stays."""
        tools = result.get("tools")
        if self.everything or not isinstance(tools, list):
            return result
        kept = [tool for tool in tools if isinstance(tool, dict) and self.allows(tool.get("name"))]
        return {**result, "tools": kept}


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
