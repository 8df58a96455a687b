"""What is known of a request before its end: what was asked, of which server, by whom."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from autobot_mcp_bridge.policy.audit.redaction import ArgumentRedactor
from autobot_mcp_bridge.policy.audit.who import Identity


class Kind(Enum):
    """Whether a request leaves a line."""

    CALL = "always one"
    QUIET = "only if its caller may not: what asks for lists and opens conversations"
    MESSAGE = "the same, and it is not counted: notifications, answers, streams and ends"


# Requests that do nothing on anybody's behalf.
QUIET = frozenset(
    {
        *("initialize", "ping", "server/discover", "logging/setLevel", "subscriptions/listen"),
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list"),
    }
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a line says of a request, apart from its end."""

    kind: Kind
    method: str
    tool: str | None
    args: Any
    who: Identity
    session: str
    client: str
    era: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a line says of a server, and how its clients' words are redacted."""

    tenant: str
    project: str | None
    server: str
    instance: str
    redact: ArgumentRedactor
