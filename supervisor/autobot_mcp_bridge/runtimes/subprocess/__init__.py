"""Servers as plain child processes: no systemd, and no sandbox either."""

from autobot_mcp_bridge.runtimes.subprocess.runtime import SubprocessRuntime

__all__ = ["SubprocessRuntime"]
