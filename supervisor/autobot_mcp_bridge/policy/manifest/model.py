"""A manifest as checked: the keys of scoped-mcp's format (SM-13 to SM-23), and three of ours.

Ours are `scopes`, `resource_allowlist` and `prompt_allowlist` of a module, which scoped-mcp passes
over. Values are taken as pydantic takes them from YAML: a variable gives a number as text.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from autobot_mcp_bridge.model.rates import RateText
from autobot_mcp_bridge.model.server import AgentType

Decode = Literal["base64", "urlsafe_base64", "url"]
Seconds = Annotated[float, Field(ge=0)]


class Part(BaseModel):
    """A frozen record that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Module(Part):
    """`modules.KEY`; what `config` may hold is known once its type is."""

    mode: Literal["read", "write"] | None = None
    type: str | None = None
    config: dict[str, Any] = {}
    optional: bool = False
    dependency_wait_timeout_seconds: Seconds = 30
    dependency_wait_interval_seconds: Annotated[float, Field(gt=0)] = 1

    @field_validator("mode", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return None if value == "" else value


class Scope(Part):
    """Which arguments of which tools are kept within a scope."""

    tools: tuple[str, ...] = ("*",)
    arguments: tuple[str, ...] = Field(min_length=1)
    strategy: str
    config: dict[str, Any] = {}


class ProxyConfig(Part):
    """`config` of a module of type mcp_proxy (SM-47)."""

    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    discovery_timeout_seconds: Annotated[float, Field(gt=0)] = 10
    tool_allowlist: tuple[str, ...] = ()
    tool_denylist: tuple[str, ...] = ()
    max_binary_bytes: Annotated[int, Field(ge=0)] | None = None
    resource_allowlist: tuple[str, ...] = ()
    prompt_allowlist: tuple[str, ...] = ()
    scopes: tuple[Scope, ...] = ()


class Credentials(Part):
    source: Literal["env", "file", "vault"] = "env"
    path: str | None = None
    vault: dict[str, Any] | None = None
    strict_permissions: bool = True


class StateBackend(Part):
    type: Literal["in_process", "dragonfly"] = "in_process"
    url: str | None = None


class RateLimits(Part):
    global_: RateText | None = Field(None, alias="global")
    per_tool: dict[str, RateText] = {}


class ArgumentFilter(Part):
    name: str
    pattern: str
    fields: tuple[str, ...] = Field(("*",), min_length=1)
    action: Literal["block", "warn"] = "block"
    decode: tuple[Decode, ...] = ()
    case_insensitive: bool = False


class ResponseFilter(Part):
    name: str
    pattern: str
    action: Literal["block", "warn", "redact"] = "warn"
    decode: tuple[Decode, ...] = ()
    case_insensitive: bool = False


class Audit(Part):
    log_args: bool = True
    agent_bus_emit: bool = False
    agent_bus_comms_dir: str | None = None
    agent_bus_hitl_emit: bool = False
    otel_service_name: str = "scoped-mcp"


class ContentLimits(Part):
    max_binary_bytes: Annotated[int, Field(ge=0)] = 10_485_760


class Permissions(Part):
    auto_approved: tuple[str, ...] = ()
    needs_approval: tuple[str, ...] = ()


class Workspace(Part):
    path: str
    access: Literal["readonly", "readwrite"]
    git_backed: bool = False
    branch_required: bool = False


class Manifest(Part):
    """One agent type."""

    agent_type: AgentType
    description: str = ""
    modules: dict[str, Module] = Field(min_length=1)
    credentials: Credentials = Credentials()
    state_backend: StateBackend = StateBackend()
    rate_limits: RateLimits = RateLimits()
    argument_filters: tuple[ArgumentFilter, ...] = ()
    response_filters: tuple[ResponseFilter, ...] = ()
    hitl: dict[str, Any] = {}
    audit: Audit = Audit()
    content_limits: ContentLimits = ContentLimits()
    # Of the platform that writes manifests; nothing reads them there or here.
    max_auto_risk: Any = None
    interaction_permissions: Permissions = Permissions()
    workspace_access: tuple[Workspace, ...] = ()

    @field_validator(
        *("credentials", "state_backend", "rate_limits", "argument_filters", "response_filters"),
        *("hitl", "audit", "content_limits", "interaction_permissions", "workspace_access"),
        mode="before",
    )
    @classmethod
    def _absent(cls, value: object, info: Any) -> object:
        """A key without a value is as good as none, in YAML."""
        return cls.model_fields[info.field_name].get_default() if value is None else value
