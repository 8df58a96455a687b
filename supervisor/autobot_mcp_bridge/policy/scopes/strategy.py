"""The seam of scopes: what an agent's words become, and whether it may say them (SM-37)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass


class ScopeViolationError(Exception):
    """The value lies outside the agent's scope; the message is told to the caller."""


# The name in scoped-mcp's document, which strategies import.
ScopeViolation = ScopeViolationError


@dataclass(frozen=True, slots=True)
class AgentContext:
    """Who names the resource."""

    agent_id: str
    agent_type: str


class ScopeStrategy(ABC):
    """Called for every scoped argument, in a thread, with a deadline; it may block for that long."""

    @abstractmethod
    def apply(self, value: str, agent_ctx: AgentContext) -> str:
        """The value as the server gets it."""

    @abstractmethod
    def enforce(self, value: str, agent_ctx: AgentContext) -> None:
        """See whether an applied value lies within the scope.

        Raises:
            ScopeViolation: it does not.
        """
