"""Which parameters of the upstream's tools have headers, as far as its lists have been seen."""

from typing import Any

from autobot_mcp_bridge.model.mirrored import Mirrored, mirrored_of
from autobot_mcp_bridge.upstream.messages import Message

# Tools that are remembered; of what is more the headers are missing, and the upstream says so.
MOST_TOOLS = 10_000


class Tools:
    """Learnt from each answer to tools/list that passes."""

    def __init__(self) -> None:
        self.mirrored: dict[str, tuple[Mirrored, ...]] = {}

    def learn(self, answer: Message) -> str | None:
        """Take in one page; the cursor of the next."""
        result: Any = answer.body.get("result")
        if not isinstance(result, dict) or not isinstance(listed := result.get("tools"), list):
            return None
        for tool in listed:
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                self.mirrored.pop(name, None)
        self.mirrored |= dict(mirrored_of(listed))
        while len(self.mirrored) > MOST_TOOLS:
            self.mirrored.popitem()
        cursor = result.get("nextCursor")
        return cursor if isinstance(cursor, str) else None
