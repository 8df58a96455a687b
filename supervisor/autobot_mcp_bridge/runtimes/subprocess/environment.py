"""A server's environment, built from nothing (NV-03)."""

from pathlib import Path, PurePath

from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.runtimes.base import Command

INVOCATION = "MCP_INVOCATION"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


def environment(spec: ServerSpec, command: Command, home: Path, invocation: str) -> dict[str, str]:
    """Everything the server finds in its environment; a later line wins over an earlier."""
    return {
        # A node or python of its own finds its siblings (npx beside node).
        "PATH": f"{PurePath(command.argv[0]).parent}:{SYSTEM_PATH}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TMPDIR": str(home / "tmp"),
        # A python server would otherwise keep its answers in a block buffer (B6).
        "PYTHONUNBUFFERED": "1",
        "MCP_INSTANCE": spec.instance,
        **command.env,
        **spec.env,
        INVOCATION: invocation,  # last: strays are found by it
    }
