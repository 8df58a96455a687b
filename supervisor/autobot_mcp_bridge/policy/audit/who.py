"""Whose call it was, in words that open nothing: no token, no session id."""

import uuid
from dataclasses import dataclass
from functools import lru_cache

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.policy.principals import Key, Principal, principal_of
from autobot_mcp_bridge.policy.who import agent_of

# The namespace of the sessions' names (RFC 9562 section 5.5), of this product alone.
_SESSIONS = uuid.UUID("5c1b9f0e-7d0c-5a62-9b0e-2f6d1f6f8a10")
# Of the sha256 of a token or of an issuer's subject enough to tell callers apart.
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, as a line names it.

    Attributes:
        principal: the beginning of the digest that stands in tokens.d or servers.json.
        agent_id: which agent it is; None for a caller of whom neither key nor entry says it.
        agent_type: which kind of agent.
    """

    principal: str
    agent_id: str | None = None
    agent_type: str | None = None


def identity(principal: Principal, spec: ServerSpec) -> Identity:
    """The one place that says how a caller of a server is named."""
    return Identity(principal.digest[:_SHOWN], *agent_of(principal, spec))


def identity_of(key: Key, context: str | None) -> Identity:
    """How the holder of a key is named, who calls from this project, whatever the server."""
    shown = principal_of(key, "", context).digest[:_SHOWN]
    return Identity(shown, key.agent_id, key.agent_type)


@lru_cache(maxsize=4096)
def session_name(session_id: str) -> str:
    """A name for a session: the same for each of its calls, and of no use to whoever reads it."""
    # A header may hold any bytes.
    text = session_id[:512].encode(errors="backslashreplace").decode()
    return str(uuid.uuid5(_SESSIONS, text))


def connection_name(address: str, port: int) -> str:
    """The same for a caller without a session, by its connection."""
    return session_name(f"conn:{address}:{port}")
