"""Entries of servers.json for the stdio fakes in tests/servers."""

import os
import sys
from pathlib import Path
from typing import Any

SERVERS = Path(__file__).resolve().parent.parent / "servers"
# Bridge copies the fakes to where an unprivileged uid can read them and puts that path here.
PLACE = "@SERVERS@"


def python() -> str:
    """A Python that any uid can execute: as root, one of ours may lie below a 0700 directory."""
    if os.geteuid() != 0:
        return sys.executable
    system = "/usr/bin/python3"
    assert os.access(system, os.X_OK), "as root the tests need /usr/bin/python3"
    return system


def entry(script: str, name: str, *words: str, **settings: Any) -> dict[str, Any]:
    """A server that runs tests/servers/<script>.py with these words."""
    command = [python(), "-S", f"{PLACE}/{script}.py", *words]
    return {"name": name, "command": command, **settings}


def echo(name: str = "echo", *words: str, **settings: Any) -> dict[str, Any]:
    return entry("echo", name, *words, **settings)


def hostile(mode: str, name: str | None = None, *words: str, **settings: Any) -> dict[str, Any]:
    return entry("hostile", name or mode.replace("_", "-"), mode, *words, **settings)


def instance_of(server: dict[str, Any]) -> str:
    """The instance name of an entry."""
    tenant, project = server.get("tenant", "default"), server.get("project")
    if project is not None:
        return f"{tenant}.{project}.{server['name']}"
    return server["name"] if tenant == "default" else f"{tenant}.{server['name']}"


def path_of(server: dict[str, Any]) -> str:
    """The URL path of an entry's endpoint."""
    project = f"/p/{server['project']}" if server.get("project") is not None else ""
    return f"/t/{server.get('tenant', 'default')}{project}/s/{server['name']}/mcp"
