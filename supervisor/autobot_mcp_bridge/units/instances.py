"""The names of a server's units and of the directory of its drop-ins."""

from pathlib import Path

UNITS = Path("/etc/systemd/system")
DROP_IN = "50-mcp-bridge.conf"  # apply's own; administrators use 90-*.conf
SLICE = "mcpbridge.slice"  # as in the template; an administrator's drop-in may say another


def socket_of(instance: str) -> str:
    return f"autobot-mcp-bridge@{instance}.socket"


def service_of(instance: str) -> str:
    return f"autobot-mcp-bridge@{instance}.service"


def way_out_of(instance: str) -> str:
    """Of network mode names: the socket in its network namespace, which is there by this unit."""
    return f"mcp-bridge-egress@{instance}.socket"


def folder_of(units: Path, instance: str) -> Path:
    """Where the drop-ins of its service lie, below a directory for units."""
    return units / f"{service_of(instance)}.d"
