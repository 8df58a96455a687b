"""Whose call it is, for everything that decides about it: made in one place."""

from typing import NamedTuple

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.policy.principals import Principal


class Who(NamedTuple):
    """A caller of one server.

    Attributes:
        agent_id: which agent calls; None for a caller that is none.
        agent_type: by which its manifest is found; None: no manifest holds for it.
        principal: digest of who has been authenticated.
        session: id of its handshake session; empty in the modern era.
    """

    tenant: str
    project: str | None
    instance: str
    agent_id: str | None
    agent_type: str | None
    principal: str
    session: str

    @property
    def name(self) -> str:
        """What is counted as one caller: an agent, whatever it shows, else a principal."""
        return f"agent:{self.agent_id}" if self.agent_id is not None else self.principal


def agent_of(principal: Principal, spec: ServerSpec) -> tuple[str | None, str | None]:
    """Id and type of the agent: its key's; of a caller without a key those of the server's entry."""
    if principal.key is not None:
        return principal.key.agent_id, principal.key.agent_type
    return spec.agent.id, spec.agent.type


def who_of(spec: ServerSpec, principal: Principal, session: str = "") -> Who:
    """The caller; the project is the one that it calls from, or else the server's."""
    return Who(
        *(spec.tenant, principal.project or spec.project, spec.instance),
        *agent_of(principal, spec),
        *(principal.digest, session),
    )
