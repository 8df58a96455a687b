"""Who an API key is for: its roles, and the agent that it names."""

import re
from enum import StrEnum

# The patterns of scoped-mcp, matched whole: a trailing newline is no part of a name.
AGENT_ID = r"[a-z0-9][a-z0-9-]{0,62}"
AGENT_TYPE = r"[a-z0-9][a-z0-9_-]{0,62}"
_ID, _TYPE = re.compile(AGENT_ID), re.compile(AGENT_TYPE)


class Role(StrEnum):
    """What the holder of a key may do beyond calling tools; every key has at least `member`."""

    TENANT_ADMIN = "tenant_admin"
    SECURITY_OFFICER = "security_officer"
    MEMBER = "member"


# Who sees the servers of all projects of the tenant while no project is named (NV-29).
OVERSEERS = frozenset({Role.TENANT_ADMIN, Role.SECURITY_OFFICER})


def is_agent_id(text: str) -> bool:
    """Tell whether the text may name an agent."""
    return _ID.fullmatch(text) is not None


def is_agent_type(text: str) -> bool:
    """Tell whether the text may name a kind of agents."""
    return _TYPE.fullmatch(text) is not None
