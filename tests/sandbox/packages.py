"""The servers of npm and PyPI that are put to work, each at one version."""

from typing import Any

EVERYTHING = ("npx", "-y", "@modelcontextprotocol/server-everything@2026.8.31")
FILESYSTEM = ("npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31")
MEMORY = ("npx", "-y", "@modelcontextprotocol/server-memory@2026.8.31")
THINKING = ("npx", "-y", "@modelcontextprotocol/server-sequential-thinking@2026.8.31")
BROWSER = ("npx", "-y", "@playwright/mcp@0.0.83")
TIME = ("uvx", "mcp-server-time@2026.10.19")
GIT = ("uvx", "mcp-server-git@2026.10.19")
FETCH = ("uvx", "mcp-server-fetch@2026.10.24")
# Its last release asks for mcp 1.6 or newer, and cannot work with 2.
SQLITE = ("uvx", "--with", "mcp<2", "mcp-server-sqlite@2025.4.25")
ALL = (EVERYTHING, FILESYSTEM, MEMORY, THINKING, BROWSER, TIME, GIT, FETCH, SQLITE)


def server(name: str, package: tuple[str, ...], *words: str, **keys: Any) -> dict[str, Any]:
    """A definition that runs the package, in the profile of its kind unless the keys say another."""
    profile = "node" if package[0] == "npx" else "python"
    return {"name": name, "command": [*package, *words], "profile": profile, **keys}
