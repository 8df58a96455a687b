"""What a record says of a request: the one place where a call's record is begun."""

from typing import Any

from aiohttp import web

from autobot_mcp_bridge.policy.audit.asked import QUIET, Asked, Kind
from autobot_mcp_bridge.policy.audit.record import CallRecord
from autobot_mcp_bridge.policy.audit.trail import AuditTrail
from autobot_mcp_bridge.policy.audit.who import connection_name, identity, session_name
from autobot_mcp_bridge.policy.methods import HANDSHAKE_REQUESTS, MODERN_REQUESTS
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.proxy.incoming import Incoming
from autobot_mcp_bridge.proxy.peers import CLIENT
from autobot_mcp_bridge.proxy.served import Served

SESSION_HEADER = "Mcp-Session-Id"
_KNOWN = HANDSHAKE_REQUESTS | MODERN_REQUESTS


def begin(
    trail: AuditTrail,
    request: web.BaseRequest,
    served: Served,
    principal: Principal,
    incoming: Incoming | None,
    era: str,
) -> CallRecord:
    """The record of one message, or of a request without any (GET, DELETE).

    Whoever gets it closes it; as a context manager it is closed whatever happens.
    """
    server = trail.of(served.spec)
    redact = server.redact
    kind, tool, args = Kind.CALL, None, None
    method = incoming.method if incoming is not None else request.method
    if incoming is None or method is None or incoming.client_id is None:
        kind = Kind.MESSAGE
    elif method in QUIET:
        kind = Kind.QUIET
    else:
        params = incoming.params
        asked: Any
        if method == "tools/call":
            name, asked = params.get("name"), params.get("arguments")
            tool = redact.name(name) if isinstance(name, str) else None
        else:
            method = method if method in _KNOWN else redact.name(method)
            asked = {name: value for name, value in params.items() if name != "_meta"}
        args = redact(asked) if trail.keeps_args else None
    session_id = request.headers.get(SESSION_HEADER)
    session = session_name(session_id) if session_id else connection_name(*_peer(request))
    client = request.get(CLIENT, "-")
    said = Asked(
        kind, method or "", tool, args, identity(principal, served.spec), session, client, era
    )
    return trail.begin(server, said, served.counts.calls)


def _peer(request: web.BaseRequest) -> tuple[str, int]:
    """Address and port of the other end, which may be a reverse proxy."""
    transport = request.transport
    found = transport.get_extra_info("peername") if transport is not None else None
    return (found[0], found[1]) if isinstance(found, tuple) else ("-", 0)
