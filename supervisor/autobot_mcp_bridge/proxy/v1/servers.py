"""What each route of `/v1` does."""

import logging
from bisect import bisect_right

from autobot_mcp_bridge.policy.projects import may_view
from autobot_mcp_bridge.proxy.served import Served
from autobot_mcp_bridge.proxy.v1.ask import ask
from autobot_mcp_bridge.proxy.v1.asked import Asked
from autobot_mcp_bridge.proxy.v1.bodies import (
    Discovery,
    Ended,
    Server,
    Servers,
    Status,
    Tools,
    server_of,
    status_of,
)

log = logging.getLogger(__name__)


async def catalogue(asked: Asked) -> Servers:
    """A page of those that the caller sees, by id; a cursor is the last id of a page."""
    key, context = asked.key, asked.context
    seen = {
        served.spec.instance: served
        for served in asked.bridge.routes.values()
        if served.spec.tenant == key.tenant and may_view(key, served.spec.project, context)
    }
    names = sorted(seen)
    first = bisect_right(names, asked.cursor)
    page = names[first : first + asked.limit]
    more = first + asked.limit < len(names)
    return Servers(
        servers=[server_of(seen[name]) for name in page],
        next_cursor=page[-1] if more else None,
    )


async def entry(_asked: Asked, served: Served) -> Server:
    return server_of(served)


async def status(_asked: Asked, served: Served) -> Status:
    return status_of(served)


async def discovery(asked: Asked, served: Served) -> Discovery:
    """What it says of itself; one that has never run is started for it."""
    found = await ask(served, asked.caller_of(served), "server/discover", {})
    return Discovery(id=served.spec.instance, discovery=found)


async def tools(asked: Asked, served: Served) -> Tools:
    """A page of its tools; a sleeping server's are known, one that has never run is started."""
    params = {"cursor": asked.cursor} if asked.cursor else {}
    found = await ask(served, asked.caller_of(served), "tools/list", params)
    listed, cursor = found.get("tools"), found.get("nextCursor")
    return Tools(
        id=served.spec.instance,
        tools=[tool for tool in listed if isinstance(tool, dict)]
        if isinstance(listed, list)
        else [],
        next_cursor=cursor if isinstance(cursor, str) else None,
    )


async def end_sessions(asked: Asked, served: Served) -> Ended:
    """End what the caller itself has open: sessions, streams, calls, and isolated processes."""
    caller = asked.caller_of(served)
    sessions = served.conversations.sessions
    before = len(sessions)
    served.conversations.dismiss(lambda principal: principal.digest != caller.digest)
    return Ended(id=served.spec.instance, ended=before - len(sessions))


async def withdraw(asked: Asked, served: Served) -> Status:
    """Stop it until an operator starts it again; its definition is root's, and stays."""
    served.stop()
    name = served.spec.instance
    log.warning(
        "%s: taken out of service by %s, key %s of %s; `mcp-bridge start %s` lets it run again",
        name,
        asked.key.agent_id,
        asked.key.id,
        asked.key.tenant,
        name,
        extra={"MCP_INSTANCE": name},
    )
    return status_of(served)
