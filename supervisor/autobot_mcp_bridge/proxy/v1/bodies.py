"""What `/v1` answers with: each record is a schema of the OpenAPI document, too."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from autobot_mcp_bridge.proxy.describe import describe
from autobot_mcp_bridge.proxy.served import Served, state_of


class Body(BaseModel):
    model_config = ConfigDict(frozen=True)


class Server(Body):
    """One server of the tenant."""

    id: str = Field(description="its instance name, by which the other routes know it")
    tenant: str
    project: str | None = Field(description="absent for a server that all projects share")
    name: str
    path: str = Field(description="of its MCP endpoint, on this listener")
    sessions: str = Field(description="shared or isolated")
    state: str = Field(description="as `mcp-bridge list` shows it")


class Servers(Body):
    """One page of the catalogue, by id."""

    servers: list[Server]
    next_cursor: str | None = Field(description="for the next page; null at the last one")


class Status(Body):
    """What a server does; times are in seconds."""

    id: str
    state: str
    detail: str = Field(description="a sentence about the state, or nothing")
    uptime: float | None = Field(description="how long its process has run")
    idle_in: float | None = Field(description="until it is stopped for want of calls")
    sessions: int
    open_calls: int
    calls: int = Field(description="since the proxy started")
    failed: int
    starts: int
    crashes: int
    breaker: str
    retry_after: float | None = Field(description="until the breaker lets a start be tried")


class Discovery(Body):
    """What a server says of itself: its server/discover result, translated where it must be."""

    id: str
    discovery: dict[str, Any]


class Tools(Body):
    """One page of the tools that may be called, as the server lists them."""

    id: str
    tools: list[dict[str, Any]]
    next_cursor: str | None = Field(description="the server's own, for the next page")


class Ended(Body):
    """The caller's sessions on one server have ended."""

    id: str
    ended: int = Field(description="how many of the handshake era there were")


class ErrorData(Body):
    code: str = Field(description="a stable word")


class ErrorDetail(Body):
    code: int
    message: str
    data: ErrorData | None = None


class Error(Body):
    """The same form as at the MCP endpoints."""

    jsonrpc: str
    id: None
    error: ErrorDetail


def server_of(served: Served) -> Server:
    spec = served.spec
    return Server(
        id=spec.instance,
        tenant=spec.tenant,
        project=spec.project,
        name=spec.name,
        path=spec.id.path,
        sessions=spec.sessions,
        state=state_of(served)[0].value,
    )


def status_of(served: Served) -> Status:
    told: dict[str, Any] = {**describe(served), "id": served.spec.instance}
    return Status.model_validate({name: told[name] for name in Status.model_fields})
