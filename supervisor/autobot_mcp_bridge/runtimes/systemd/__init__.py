"""The systemd runtime: every server an instance of autobot-mcp-bridge@.service."""

from autobot_mcp_bridge.runtimes.systemd.kept import KeptPipes
from autobot_mcp_bridge.runtimes.systemd.runtime import SystemdRuntime

__all__ = ["KeptPipes", "SystemdRuntime"]
