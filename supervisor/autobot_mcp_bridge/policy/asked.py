"""One request, as the chain sees it: read from the parsed body, and never from a header."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from autobot_mcp_bridge.policy.descriptor import Descriptor
from autobot_mcp_bridge.policy.who import Who

# Finds a tool's descriptor in the server's own list, or None; it may ask the server for that list.
Describe = Callable[[str], Awaitable[Descriptor | None]]
# Refuses a tool that is not as it was accepted, by a CallError; it may ask, too.
Check = Callable[[str], Awaitable[None]]


async def _any(_tool: str) -> None:
    pass


@dataclass(slots=True)
class Asked:
    """A request on its way through the chain.

    Attributes:
        params: of the message itself: what hooks and scopes change is what the server gets.
        known: the methods of the caller's era.
        tool: which is called; None where none is, or no text names it.
    """

    who: Who
    method: str
    params: dict[str, Any]
    known: frozenset[str]
    describe: Describe
    check: Check = _any

    tool: str | None = field(init=False)

    def __post_init__(self) -> None:
        name = self.params.get("name") if self.method == "tools/call" else None
        self.tool = name if isinstance(name, str) else None

    @property
    def arguments(self) -> dict[str, Any]:
        """What filters look at: a tool's or prompt's arguments, or what stands for them elsewhere."""
        found = self.params.get("arguments")
        if self.method in ("tools/call", "prompts/get"):
            return found if isinstance(found, dict) else {}
        if self.method == "completion/complete":
            return _completed(self.params)
        return {"uri": self.params["uri"]} if "uri" in self.params else {}

    def __str__(self) -> str:
        """For the log: the method, and which tool."""
        return f"{self.method} {self.tool!r}" if self.tool is not None else self.method


def _completed(params: dict[str, Any]) -> dict[str, Any]:
    """The argument that is to be completed, and those that are known already (25 completion)."""
    said, context = params.get("argument"), params.get("context")
    others = context.get("arguments") if isinstance(context, dict) else None
    found: dict[str, Any] = {**others} if isinstance(others, dict) else {}
    if isinstance(said, dict):
        found[str(said.get("name"))] = said.get("value")
    return found
