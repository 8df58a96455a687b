"""The host's own settings: host.toml, as checked."""

from typing import Literal

from pydantic import Field

from autobot_mcp_bridge.model.quantities import Duration, Size
from autobot_mcp_bridge.model.rates import RateText
from autobot_mcp_bridge.model.server import EnvName, Record, Scope

# What an access token may be signed with: asymmetric only, for a key that verifies must not sign.
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


class Listen(Record):
    address: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(
        8765, ge=0, le=65535, description="port of the MCP endpoints; 0: any free one"
    )
    beyond_loopback: bool = Field(
        False, description="the explicit word for any other address without TLS"
    )


class Operator(Record):
    """The listener for /metrics and the details of /healthz."""

    address: str = Field("127.0.0.1", description="address of the operator's listener")
    port: int = Field(8766, ge=0, le=65535, description="its port; 0: any free one")


class Tls(Record):
    """Certificate and key of the clients' listener; both or none."""

    certificate: str | None = Field(
        None,
        description="PEM file with the chain, or the name of a credential; absent: plain http",
    )
    key: str | None = Field(
        None, description="PEM file with its key, not encrypted, or the name of a credential"
    )


class Http(Record):
    allowed_hosts: tuple[str, ...] = Field((), description="Host values beyond loopback's names")
    allowed_origins: tuple[str, ...] = Field(
        (), description="Origin values that are let in; their pages may read answers (CORS)"
    )
    cors_headers: tuple[str, ...] = Field(
        (), description="further request headers for those pages, such as Mcp-Param-Region"
    )
    public_url: str | None = Field(
        None, description="as clients write it, without a path; needed with oauth.issuer"
    )
    trusted_proxies: tuple[str, ...] = Field(
        (),
        description="addresses or networks of proxies in front, whose X-Forwarded-For is believed",
    )


class OAuth(Record):
    """Access tokens of an authorization server; static tokens count beside them."""

    issuer: str | None = Field(
        None, description="whose access tokens are taken; absent: static tokens only"
    )
    jwks_uri: str | None = Field(
        None, description="where its keys are; absent: where its metadata says"
    )
    algorithms: tuple[Algorithm, ...] = Field(
        ("RS256", "PS256", "ES256", "EdDSA"), description="signatures that count"
    )
    scopes: tuple[Scope, ...] = Field(
        (), description="what a token needs; `{tenant}`, `{project}` and `{name}` are the server's"
    )
    leeway: Duration = Field("30s", description="by which clocks may differ, at most 5m")  # type: ignore[assignment]
    keys_fresh: Duration = Field("10m", gt=0, description="until keys are asked for again")  # type: ignore[assignment]
    keys_kept: Duration = Field(  # type: ignore[assignment]
        "24h", gt=0, description="for which keys count while the issuer gives none"
    )


class HostLimits(Record):
    sessions_per_server: int = Field(1000, ge=1, description="live sessions of one server")
    sessions_per_token: int = Field(500, ge=1, description="live sessions of one token and server")
    isolated_per_server: int = Field(
        64, ge=1, description="processes of one server with isolated sessions"
    )
    isolated_per_token: int = Field(16, ge=1, description="of them, processes of one token")
    session_idle: Duration = Field("1h", gt=0, description="without a request until a session ends")  # type: ignore[assignment]
    body_timeout: Duration = Field("30s", gt=0, description="for a request body to arrive whole")  # type: ignore[assignment]
    stream_events: int = Field(256, ge=8, description="messages that a stream holds for its reader")
    stream_bytes: Size = Field("4M", ge=65536, description="bytes that a session's stream holds")  # type: ignore[assignment]
    resume: Duration = Field(  # type: ignore[assignment]
        "60s", gt=0, description="for a client to come back for a streamed answer"
    )
    connections: int = Field(4096, ge=8, description="connections of clients")
    connection_idle: Duration = Field(  # type: ignore[assignment]
        "75s", gt=0, description="for a request's head to arrive on an open connection"
    )
    write_timeout: Duration = Field(  # type: ignore[assignment]
        "60s", gt=0, description="until a client is dropped that takes nothing of its answer"
    )
    calls_per_server: int = Field(1024, ge=1, description="calls in flight to one server")


class Log(Record):
    access: Literal["off", "errors", "all"] = Field(
        "errors", description="which requests are logged: none, those refused, all"
    )


class Audit(Record):
    """One line for each call."""

    file: bool = Field(True, description="whether a file in the state directory has them")
    args: bool = Field(True, description="whether they hold the calls' arguments, redacted")
    stderr: Literal["off", "blocked", "all"] = Field(
        "blocked", description="which of them go to stderr or the journal, too"
    )
    max_bytes: Size = Field("50M", ge=65536, description="size at which a new file is begun")  # type: ignore[assignment]
    backups: int = Field(5, ge=1, le=1000, description="how many of the files before are kept")
    required: bool = Field(
        False, description="refuse calls while no line can be written (503 audit_unavailable)"
    )


class HostRates(Record):
    tenant: RateText | None = Field(
        None, description="calls of one tenant to all its servers, such as `600/minute`"
    )
    redis: str | None = Field(
        None, description="where several proxies count together; absent: each by itself"
    )


class Environment(Record):
    pass_: tuple[EnvName, ...] = Field(
        (), alias="pass", description="variables handed to package installs, never to servers"
    )


class HostSettings(Record):
    """Everything of host.toml, with every default filled in."""

    listen: Listen = Field(Listen(), description="where clients connect")
    operator: Operator = Field(Operator(), description="where operators look")
    tls: Tls = Field(Tls(), description="by which certificate clients know the host")
    http: Http = Field(Http(), description="which requests are let in")
    oauth: OAuth = Field(OAuth(), description="whose access tokens are taken")
    limits: HostLimits = Field(HostLimits(), description="what one host carries")
    rates: HostRates = Field(HostRates(), description="how often may be called")
    log: Log = Field(Log(), description="what is logged")
    audit: Audit = Field(Audit(), description="what is recorded of each call")
    environment: Environment = Field(Environment(), description="variables for installs")
