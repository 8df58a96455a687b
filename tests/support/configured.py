"""Configuration directories for tests of reading, editing and commands."""

import json
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.config.load import Loaded, load
from autobot_mcp_bridge.config.places import Places

SMALL = {"name": "time", "command": ["uvx", "mcp-server-time"]}


def places_in(root: Path) -> Places:
    """Three directories below one; the configuration's exists."""
    places = Places(root / "config", root / "state", root / "run")
    places.servers_d.mkdir(parents=True, mode=0o755, exist_ok=True)
    return places


def write_servers(places: Places, *servers: Any, **more: Any) -> None:
    write_text(places.servers_json, json.dumps({"version": 1, "servers": servers, **more}))


def write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)


def loaded_from(places: Places, *servers: Any, **more: Any) -> Loaded:
    write_servers(places, *servers, **more)
    return load(places)


def told(loaded: Loaded) -> dict[str, str]:
    """JSON path to the clause, for each problem."""
    return {problem.path: problem.allowed for problem in loaded.problems}
