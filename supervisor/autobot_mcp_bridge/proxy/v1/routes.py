"""The one table of `/v1`: what there is, what it takes, who may, and what answers.

The OpenAPI document is made of it (openapi.py), requests are served by it (api.py).
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from autobot_mcp_bridge.model.agents import Role
from autobot_mcp_bridge.proxy.served import Served
from autobot_mcp_bridge.proxy.v1 import servers
from autobot_mcp_bridge.proxy.v1.asked import Asked
from autobot_mcp_bridge.proxy.v1.bodies import (
    Body,
    Discovery,
    Ended,
    Server,
    Servers,
    Status,
    Tools,
)

PREFIX = "/v1/"
OPENAPI = "/v1/openapi.json"
_ID = "{id}"


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path.

    Attributes:
        path: with `{id}` for a server.
        says: what it is for; with a full stop.
        answer: the record that it answers with, under 200.
        about: the handler of a route that is about one server; `about_all` of another.
        query: names of parameters that it takes.
        changes: whether it is no view: the caller has to come from the server's project.
        role: who may, beyond every holder of a key.
    """

    method: str
    path: str
    name: str
    says: str
    answer: type[Body]
    about: Callable[[Asked, Served], Awaitable[Body]] | None = None
    about_all: Callable[[Asked], Awaitable[Body]] | None = None
    query: tuple[str, ...] = ()
    changes: bool = False
    role: Role | None = None
    pattern: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        pattern = re.escape(self.path).replace(re.escape(_ID), "(?P<id>[^/]+)")
        object.__setattr__(self, "pattern", re.compile(pattern))


ROUTES = (
    Route(
        "GET",
        "/v1/servers",
        "listServers",
        "The catalogue: the servers that the caller sees.",
        Servers,
        about_all=servers.catalogue,
        query=("limit", "cursor"),
    ),
    Route(
        "GET",
        "/v1/servers/{id}",
        "getServer",
        "One server.",
        Server,
        about=servers.entry,
    ),
    Route(
        "GET",
        "/v1/servers/{id}/status",
        "getStatus",
        "What it does now.",
        Status,
        about=servers.status,
    ),
    Route(
        "GET",
        "/v1/servers/{id}/discovery",
        "discoverServer",
        "What it says of itself. A server that has never run is started.",
        Discovery,
        about=servers.discovery,
    ),
    Route(
        "GET",
        "/v1/servers/{id}/tools",
        "listTools",
        "The tools that may be called. A server that has never run is started.",
        Tools,
        about=servers.tools,
        query=("cursor",),
    ),
    Route(
        "DELETE",
        "/v1/servers/{id}/sessions",
        "endSessions",
        "End the caller's own sessions, streams and calls on it.",
        Ended,
        about=servers.end_sessions,
        changes=True,
    ),
    Route(
        "DELETE",
        "/v1/servers/{id}",
        "withdrawServer",
        "Take it out of service until an operator starts it again. Its definition stays.",
        Status,
        about=servers.withdraw,
        changes=True,
        role=Role.TENANT_ADMIN,
    ),
)


def find(path: str) -> dict[str, tuple[Route, str]]:
    """The routes of a path by method, each with the id in it."""
    found = {}
    for route in ROUTES:
        if (match := route.pattern.fullmatch(path)) is not None:
            found[route.method] = route, match.groupdict().get("id", "")
    return found
