"""What is refused before any server is asked: every refusal passes through one function here."""

import logging
import time
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from aiohttp import web

from autobot_mcp_bridge.model.budget import Budget
from autobot_mcp_bridge.policy.audit.trail import AuditTrail
from autobot_mcp_bridge.policy.audit.who import identity_of
from autobot_mcp_bridge.policy.principals import Key
from autobot_mcp_bridge.proxy.peers import CLIENT

# Strangers' refusals in the log: so many at once, so many a second. All are counted.
STRANGERS_BURST, STRANGERS_RATE = 10, 0.1
# Characters of a path that are shown.
_LONGEST_PATH = 200

log = logging.getLogger(__name__)


class Reason(StrEnum):
    """Why; the word in the metrics and in the log."""

    HOST = "host_not_served"
    ORIGIN = "origin_not_allowed"
    NO_CREDENTIAL = "no_credential"
    NOT_VALID = "credential_not_valid"
    SCOPE = "insufficient_scope"
    ISSUER = "issuer_unavailable"
    PROJECT = "mcp_server_project_mismatch"
    ROLE = "role_required"
    UNKNOWN = "server_unknown"


# Of these nobody knows who has asked; any other is the holder's of a credential that is known.
_STRANGERS = frozenset(
    {Reason.HOST, Reason.ORIGIN, Reason.NO_CREDENTIAL, Reason.NOT_VALID, Reason.ISSUER}
)


@dataclass(frozen=True, slots=True)
class Refused:
    """One refusal.

    Attributes:
        reason: why.
        method: of HTTP.
        path: as it was sent.
        key: of a caller who is known by one; None for a stranger, and for who has a token.
        context: the project that a known caller comes from.
        instance: the server in question, where the caller may know of it.
        detail: a sentence without secrets.
        client: the address of who has asked.
    """

    reason: Reason
    method: str
    path: str
    key: Key | None = None
    context: str | None = None
    instance: str | None = None
    detail: str = ""
    client: str = "-"

    @classmethod
    def of(
        cls,
        request: web.BaseRequest,
        reason: Reason,
        key: Key | None = None,
        *,
        context: str | None = None,
        instance: str | None = None,
        detail: str = "",
    ) -> "Refused":
        """The refusal of a request."""
        path = request.rel_url.raw_path
        client = request.get(CLIENT, "-")
        return cls(reason, request.method, path, key, context, instance, detail, client)


class Refusals:
    """Counts and logs all of them, and has those of known callers recorded.

    Attributes:
        counts: since the start, by reason.
    """

    def __init__(self, trail: AuditTrail) -> None:
        self._trail = trail
        self.counts: Counter[Reason] = Counter(dict.fromkeys(Reason, 0))
        self._strangers = Budget(STRANGERS_RATE, STRANGERS_BURST, time.monotonic())

    def refused(self, it: Refused) -> None:
        """Take note of a refusal, whoever has decided it.

        A known caller's is always logged, for somebody has to answer for it; a stranger's within
        a budget, for strangers choose how many there are.
        """
        self.counts[it.reason] += 1
        if it.reason in _STRANGERS and not self._strangers.take(time.monotonic()):
            return
        log.info(
            "refused: %s: %s %s%s%s",
            it.reason.value,
            it.method,
            it.path[:_LONGEST_PATH],
            "" if it.key is None else _known(it.key, it.context),
            f": {it.detail}" if it.detail else "",
            extra={"MCP_INSTANCE": it.instance},
        )
        if it.key is not None:
            self._record(it, it.key)

    def _record(self, it: Refused, key: Key) -> None:
        asked = {
            "tenant": key.tenant,
            "project": it.context,
            "instance": it.instance,
            "client": it.client,
            "method": f"{it.method} {it.path[:_LONGEST_PATH]}",
        }
        self._trail.refused(it.reason, identity_of(key, it.context), asked)


def _known(key: Key, context: str | None) -> str:
    project = f", project {context}" if context is not None else ""
    return f" by {key.agent_id} ({key.agent_type}), key {key.id} of {key.tenant}{project}"
