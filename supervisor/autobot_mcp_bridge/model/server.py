"""One server's definition, as checked: the record that everything else works from.

The model is the only place that knows keys, types and defaults; the JSON Schema and the table in
the documentation are generated from it. An unknown key is an error.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from autobot_mcp_bridge.model import agents, credential, header
from autobot_mcp_bridge.model.credential import Credential, CredentialEntry
from autobot_mcp_bridge.model.header import HeaderEntry
from autobot_mcp_bridge.model.names import DEFAULT_TENANT, PART, PART_IN_WORDS, ServerId
from autobot_mcp_bridge.model.quantities import Duration, Percent, Size
from autobot_mcp_bridge.model.rates import RATE, RATE_IN_WORDS, RateText

_PART, _SHA256 = f"^{PART}$", r"^[0-9a-f]{64}$"
# execve(2) ends a string at NUL; a newline in argv is legal but never meant.
_WORD, _ENV_NAME, _PATH = r"^[^\x00\n]*$", r"^[A-Za-z_][A-Za-z0-9_]*$", r"^/[^\x00\n]*$"
# What useradd(8) of Debian makes.
_USER = r"^[a-z_][a-z0-9_-]{0,30}$"
# RFC 6749 section 3.3.
_SCOPE = r"^[!#-\[\]-~]+$"
_AGENT_ID, _AGENT_TYPE = f"^{agents.AGENT_ID}$", f"^{agents.AGENT_TYPE}$"
Part = Annotated[str, Field(pattern=_PART)]
AgentId = Annotated[str, Field(pattern=_AGENT_ID)]
AgentType = Annotated[str, Field(pattern=_AGENT_TYPE)]
UserName = Annotated[str, Field(pattern=_USER)]
Sha256 = Annotated[str, Field(pattern=_SHA256)]
Word = Annotated[str, Field(pattern=_WORD)]
EnvName = Annotated[str, Field(pattern=_ENV_NAME)]
HeaderName = Annotated[str, Field(pattern=header.HEADER)]
Scope = Annotated[str, Field(pattern=_SCOPE)]
AbsolutePath = Annotated[str, Field(pattern=_PATH)]
# systemd.resource-control(5), CPUWeight= and IOWeight=; it ignores a unit's value beyond it.
Weight = Annotated[int, Field(ge=1, le=10_000)]
# Entry points of installed packages: functions that see a tool's arguments first.
HOOKS = "autobot_mcp_bridge.hooks"
MOST_TASKS = 1 << 22  # PID_MAX_LIMIT of the kernel
MOST_OPEN_FILES = 1 << 20  # the default of fs.nr_open, above which setrlimit(2) fails
# Each pattern in words, for people who made a mistake.
PATTERNS = {
    **header.PATTERNS,
    _PART: PART_IN_WORDS,
    _SHA256: "64 hexadecimal digits in lower case",
    _WORD: "text without a NUL or a newline",
    _ENV_NAME: "a name of letters, digits and _, not with a digit first",
    _USER: "the name of a user",
    _SCOPE: "one scope, without a space, a quote or a backslash",
    _PATH: "an absolute path without a newline",
    _AGENT_ID: "a letter or digit, then up to 62 letters, digits and -, in lower case",
    _AGENT_TYPE: "a letter or digit, then up to 62 letters, digits, - and _, in lower case",
    RATE: RATE_IN_WORDS,
    credential.FILE: "an absolute path without a blank or a control character",
}


class Record(BaseModel):
    """A frozen record that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class Paths(Record):
    read: tuple[AbsolutePath, ...] = Field((), description="readable below these paths")
    write: tuple[AbsolutePath, ...] = Field((), description="writable below these paths")


class Root(Record):
    directory: AbsolutePath | None = Field(None, description="a directory of the host")
    image: AbsolutePath | None = Field(
        None,
        description="an image, such as a squashfs file, which nobody but root may write or exchange",
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.directory is None) == (self.image is None):
            raise ValueError("allowed is either directory or image")
        return self

    @property
    def key(self) -> Literal["directory", "image"]:
        return "image" if self.directory is None else "directory"

    @property
    def path(self) -> str:
        return self.directory or self.image or ""


class Tools(Record):
    allow: tuple[str, ...] = Field(("*",), description="tool names that pass, as shell globs")
    deny: tuple[str, ...] = Field((), description="tool names that do not, although allowed")
    drift: Literal["off", "warn", "hold"] = Field(
        "warn", description="tools that are not as they were accepted: told, or held back, too"
    )


class Methods(Record):
    allow: tuple[str, ...] = Field(
        ("tasks/*",),
        description="JSON-RPC methods beyond those of the two eras that pass, as shell globs",
    )


class Agent(Record):
    type: AgentType | None = Field(
        None, description="its manifest's name, for callers whose key names no agent"
    )
    id: AgentId | None = Field(
        None, description="which agent they are; absent: none, and no scope admits them"
    )


class Rates(Record):
    principal: RateText | None = Field(
        None, description="calls of one caller, such as `60/minute`; absent: any number"
    )
    tools: dict[str, RateText] = Field(
        default_factory=dict, description="the same by tool: of the globs that match, the longest"
    )
    concurrent: int | None = Field(
        None, ge=1, description="calls of one caller in flight at once; absent: any number"
    )


class Hook(Record):
    name: Word = Field(description="the entry point's, of the group `autobot_mcp_bridge.hooks`")
    tools: tuple[str, ...] = Field(("*",), description="for which tools, as shell globs")
    timeout: Duration = Field("2s", gt=0, description="until the call is stopped")  # type: ignore[assignment]


class Network(Record):
    mode: Literal["none", "loopback", "list", "internet", "names"] = Field(
        "none", description="what the server may reach, see below"
    )
    allow: tuple[Word, ...] = Field(
        (), description="with list: addresses and networks; with names: HOST or HOST:PORT (443)"
    )


class Limits(Record):
    memory: Size = Field("512M", description="memory of all its processes together")  # type: ignore[assignment]
    memory_high: Size | None = Field(
        None, description="from here on it is slowed down (cgroup v2); absent: never"
    )
    cpu: Percent = Field("100%", description="share of one CPU")  # type: ignore[assignment]
    cpu_weight: Weight | None = Field(
        None, description="its part of a busy CPU beside others; absent: 100, as everything has"
    )
    io_weight: Weight | None = Field(
        None, description="its part of a busy disk beside others; absent: 100, as everything has"
    )
    tasks: int = Field(128, ge=1, le=MOST_TASKS, description="threads and processes")
    open_files: int = Field(
        1024, ge=16, le=MOST_OPEN_FILES, description="open files of one process"
    )


class Timeouts(Record):
    start: Duration = Field("30s", gt=0, description="from start to its initialize answer")  # type: ignore[assignment]
    call: Duration = Field("60s", gt=0, description="of one call without progress")  # type: ignore[assignment]
    idle: Duration = Field("5m", description="without a call until it is stopped; 0: never")  # type: ignore[assignment]
    stop: Duration = Field("10s", description="from the close of stdin to the first signal")  # type: ignore[assignment]


class Breaker(Record):
    crashes: int = Field(5, ge=1, description="crashes within the window that are tolerated")
    window: Duration = Field(
        "60s", gt=0, description="the window; a sixth of it is the first wait while open"
    )  # type: ignore[assignment]
    probe: bool = Field(True, description="after the wait, let one call try a start")


class Caps(Record):
    line: Size = Field("16M", ge=65536, description="one line of the server's stdout")  # type: ignore[assignment]
    body: Size = Field("4M", ge=1024, description="one request body")  # type: ignore[assignment]
    queue: Size = Field("8M", ge=65536, description="bytes waiting for the server's stdin")  # type: ignore[assignment]


class ServerSpec(Record):
    """A server as configured, with every default filled in."""

    tenant: Part = Field(DEFAULT_TENANT, description="whose it is")
    project: Part | None = Field(None, description="of which project; absent: of all the tenant's")
    name: Part = Field(description="its name")
    command: tuple[Word, ...] = Field((), description="argv, started without a shell")
    env: dict[EnvName, Word] = Field(
        default_factory=dict, description="environment variables; not for secrets"
    )
    credentials: dict[EnvName, CredentialEntry] = Field(
        default_factory=dict, description="environment variable: its secret, see below"
    )
    paths: Paths = Field(Paths(), description="files beyond its own directory")
    root: Root | None = Field(None, description="its root file system; absent: the host's")
    groups: tuple[Part, ...] = Field((), description="supplementary groups")
    tokens_sha256: tuple[Sha256, ...] = Field((), description="sha256 of each token that is let in")
    scopes: tuple[Scope, ...] | None = Field(
        None, description="what an access token needs here; absent: what host.toml says"
    )
    tools: Tools = Field(Tools(), description="which tools are listed and may be called")
    methods: Methods = Field(Methods(), description="which further methods pass")
    agent: Agent = Field(Agent(), description="whose calls they are, see manifests")
    hooks: tuple[Hook, ...] = Field(
        (), description="what sees a tool's arguments first: `name`, `tools`, `timeout`"
    )
    rates: Rates = Field(Rates(), description="how often its callers may call")
    profile: Literal["strict", "python", "node", "npx", "uvx", "browser"] | None = Field(
        None, description="the sandbox, see below; absent: by the command"
    )
    network: Network = Field(Network(), description="what the server may reach")
    limits: Limits = Field(Limits(), description="what the server may use")
    sessions: Literal["shared", "isolated"] = Field(
        "shared", description="one process for all sessions, or one for each"
    )
    warm: bool = Field(False, description="start without waiting for a call, never stop when idle")
    warm_pool: int = Field(0, ge=0, description="isolated instances kept ready")
    timeouts: Timeouts = Field(Timeouts(), description="how long is waited")
    breaker: Breaker = Field(Breaker(), description="when crashes stop the restarts")
    caps: Caps = Field(Caps(), description="how large one message may be")
    enabled: bool = Field(True, description="whether it is served")
    cwd: AbsolutePath | None = Field(None, description="working directory; absent: its own")
    run_as: UserName | None = Field(None, description="an existing user to run as")
    max_exposure: float | None = Field(
        None, ge=0, le=10, description="the most that systemd-analyze security may give its unit"
    )
    url: str | None = Field(None, description="a remote server's endpoint, instead of a command")
    headers: dict[HeaderName, HeaderEntry] = Field(
        default_factory=dict, description="with url: what each request to it carries, see below"
    )

    @model_validator(mode="after")
    def _relations(self) -> Self:
        _ = self.id
        if not self.command and self.url is None:
            raise ValueError("command: allowed is a list of at least one word, or url instead")
        if self.run_as == "root":
            raise ValueError("run_as: allowed is any user but root")
        if self.command and not self.command[0]:
            raise ValueError("command: the first word must not be empty")
        return self

    @cached_property
    def id(self) -> ServerId:
        return ServerId(self.tenant, self.project, self.name)

    @cached_property
    def instance(self) -> str:
        return self.id.instance

    @property
    def secrets(self) -> Mapping[str, Credential]:
        """Every secret that its unit loads, by the variable that has it or its path."""
        of_headers = {
            header.variable(name): header.credential(each)
            for name, each in self.headers.items()
            if each.credential is not None
        }
        return {**self.credentials, **of_headers}

    def process_view(self, *, units: bool) -> dict[str, Any]:
        """The part whose change needs a new process; the rest is changed in place.

        apply changes the limits of a running unit's cgroup, but not what its sandbox was made of.
        """
        keys = {"command", "env", "credentials", "cwd", "sessions", "url", "headers", "run_as"}
        if self.url is not None:
            keys |= {"network", "caps"}  # its program is told of them
        if not units:
            return self.model_dump(include={*keys, "limits"})
        keys |= {"paths", "root", "groups", "network", "profile"}
        view = {**self.model_dump(include=keys), "open_files": self.limits.open_files}
        if self.network.mode == "names":
            view["network"] = self.network.mode  # the egress proxy takes other entries at once
        return view
