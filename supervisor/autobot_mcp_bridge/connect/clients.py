"""The clients that can be connected: where each keeps its servers, and in which words.

Each row is what the client's own documentation says; tests drive those that run without a screen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from autobot_mcp_bridge.model.errors import UsageError


class Scope(StrEnum):
    USER = "user"
    PROJECT = "project"


class Syntax(StrEnum):
    JSON = "json"  # with comments and trailing commas, where a person has written them
    TOML = "toml"


@dataclass(frozen=True, slots=True)
class Remote:
    """How a server with a URL is written.

    Attributes:
        url: the key of its URL.
        reference: what stands for the token in the Authorization header, `{}` being the variable;
            None where `variable` names the variable instead.
        variable: the key whose value is the variable's name.
        asks: whether the client asks for what stands in `inputs`, so that no variable is needed.
        kind: the value of the key `type`, where it is wanted.
    """

    url: str = "url"
    reference: str | None = None
    variable: str | None = None
    asks: bool = False
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """One client.

    Attributes:
        user: the user's file, below the home directory.
        project: the project's file, below its directory; None: it has none.
        key: the table of servers in it.
        remote: None: it knows programs only, which speak on stdin and stdout.
        stdio_kind: the value of the key `type` of a program, where it is wanted.
        moved: a variable that moves the user's file, and the file below what it names.
        elsewhere: where the user's file lies on other systems than Linux.
        trust: what a person has to do before a project's file counts.
    """

    name: str
    title: str
    user: str
    project: str | None
    key: str
    remote: Remote | None
    syntax: Syntax = Syntax.JSON
    stdio_kind: str | None = None
    moved: tuple[str, str] | None = None
    elsewhere: str = ""
    trust: str = ""


_CLIENTS = (
    # modelcontextprotocol.io/quickstart/user; on Linux an Electron program's usual place
    Client(
        "claude-desktop",
        "Claude Desktop",
        ".config/Claude/claude_desktop_config.json",
        None,
        "mcpServers",
        None,
        moved=("XDG_CONFIG_HOME", "Claude/claude_desktop_config.json"),
        elsewhere="~/Library/Application Support/Claude or %APPDATA%\\Claude",
    ),
    # code.claude.com/docs/en/mcp: ${VAR} counts in both files
    Client(
        "claude-code",
        "Claude Code",
        ".claude.json",
        ".mcp.json",
        "mcpServers",
        Remote(kind="http", reference="${{{}}}"),
        stdio_kind="stdio",
        moved=("CLAUDE_CONFIG_DIR", ".claude.json"),
        trust="Claude Code asks once whether a project's servers are let in",
    ),
    # code.visualstudio.com/docs/copilot/reference/mcp-configuration
    Client(
        "vscode",
        "VS Code",
        ".config/Code/User/mcp.json",
        ".vscode/mcp.json",
        "servers",
        Remote(kind="http", reference="${{input:{}}}", asks=True),
        stdio_kind="stdio",
        moved=("XDG_CONFIG_HOME", "Code/User/mcp.json"),
        elsewhere="~/Library/Application Support/Code/User or %APPDATA%\\Code\\User",
    ),
    # cursor.com/docs/mcp
    Client(
        "cursor",
        "Cursor",
        ".cursor/mcp.json",
        ".cursor/mcp.json",
        "mcpServers",
        Remote(reference="${{env:{}}}"),
    ),
    # docs.windsurf.com/windsurf/cascade/mcp: `url` is taken for the older transport
    Client(
        "windsurf",
        "Windsurf",
        ".codeium/windsurf/mcp_config.json",
        None,
        "mcpServers",
        Remote(url="serverUrl", reference="${{env:{}}}"),
    ),
    # developers.openai.com/codex/mcp; a token in the file itself is refused there
    Client(
        "codex",
        "Codex",
        ".codex/config.toml",
        ".codex/config.toml",
        "mcp_servers",
        Remote(variable="bearer_token_env_var"),
        syntax=Syntax.TOML,
        moved=("CODEX_HOME", "config.toml"),
        trust="Codex reads the file in projects only that it has been told to trust",
    ),
    # geminicli.com/docs/tools/mcp-server: `url` is the older transport without a type
    Client(
        "gemini",
        "Gemini CLI",
        ".gemini/settings.json",
        ".gemini/settings.json",
        "mcpServers",
        Remote(url="httpUrl", reference="${{{}}}"),
        moved=("GEMINI_CLI_HOME", ".gemini/settings.json"),
        trust="Gemini CLI connects in folders only that it has been told to trust",
    ),
)
CLIENTS: Mapping[str, Client] = {client.name: client for client in _CLIENTS}


def file_of(
    client: Client, scope: Scope, *, home: Path, project: Path, environ: Mapping[str, str]
) -> Path:
    """Where the client keeps its servers.

    Args:
        client: which.
        scope: the user's file, or the project's.
        home: the user's home directory.
        project: the project's directory.
        environ: the user's variables, of which one may move the user's file.

    Raises:
        UsageError: it has no file for projects.
    """
    if scope is Scope.PROJECT:
        if client.project is None:
            raise UsageError(f"{client.title} has no file for a project; allowed is --scope user")
        return project / client.project
    if client.moved is not None:
        variable, name = client.moved
        # The XDG specification, which has relative values ignored, is the strictest of them.
        if (base := environ.get(variable, "")).startswith("/"):
            return Path(base, name)
    return home / client.user
