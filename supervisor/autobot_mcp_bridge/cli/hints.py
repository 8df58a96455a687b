"""What to type next: for each server that is ready its URL, a curl line and a `call` line."""

import json
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.config.headers import header_file
from autobot_mcp_bridge.config.places import Places, default_places
from autobot_mcp_bridge.model import versions
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.mirrored import header_value
from autobot_mcp_bridge.model.names import ServerId
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.units.packages.commands import Packages


@dataclass(frozen=True, slots=True)
class Example:
    """A tool of a server, with arguments that work."""

    tool: str
    arguments: dict[str, Any]


class Hints:
    """Prints the lines of each server once, as soon as its command is there.

    Args:
        places: where the header files and the running proxy's files lie.
        calls: a JSON file of examples: `{INSTANCE: {"tool": …, "arguments": {…}}}`; None: none,
            and every server gets a line that lists its tools.

    Raises:
        UsageError: the file cannot be read as that.
    """

    def __init__(self, places: Places, calls: Path | None) -> None:
        self._places = places
        self._examples = read_examples(calls) if calls is not None else {}
        self._packages: Packages | None = None

    def start(self, url: str, packages: Packages) -> None:
        """Print for what is ready now, and for the others as they become so."""
        self._packages = packages

        def tell(spec: ServerSpec) -> None:
            print_hints(spec.id, url, self._places, self._examples.get(spec.instance))

        packages.on_ready(tell)

    def stop(self) -> None:
        if self._packages is not None:
            self._packages.on_ready(None)


def print_hints(server: ServerId, url: str, places: Places, example: Example | None) -> None:
    """Print the server's lines; each can be pasted as it stands."""
    lines = [
        "",
        f"{server.instance}  {url}{server.path}",
        f"  {curl_line(server, url, places, example)}",
    ]
    if example is not None:
        lines.append(f"  {call_line(server, places, example)}")
    if not header_file(places, server).exists():
        new = [own_path(), "token", "new", *place_words(places), server.instance, "--write-header"]
        lines.insert(2, f"  {shlex.join(new)}")
    print("\n".join(lines), flush=True)


def curl_line(server: ServerId, url: str, places: Places, example: Example | None) -> str:
    """One request of 2026-07-28: a tool's call, or the list of tools where no example is known."""
    method = "tools/call" if example is not None else "tools/list"
    params: dict[str, Any] = {}
    headers = [
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {versions.MODERN}",
        f"Mcp-Method: {method}",
    ]
    if example is not None:
        params = {"name": example.tool, "arguments": example.arguments}
        headers.append(f"Mcp-Name: {header_value(example.tool)}")
    params["_meta"] = {versions.META_VERSION: versions.MODERN, versions.META_CAPABILITIES: {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    words = ["curl", "-sS", url + server.path, "-H", f"@{header_file(places, server)}"]
    for header in headers:
        words += ["-H", header]
    return shlex.join([*words, "-d", json.dumps(body, separators=(",", ":"))])


def call_line(server: ServerId, places: Places, example: Example) -> str:
    words = [own_path(), "call", *place_words(places), server.instance, example.tool]
    return shlex.join([*words, json.dumps(example.arguments)])


def own_path() -> str:
    """This program as a path that works from anywhere; a module run by `python -m` has none."""
    beside = Path(sys.executable).parent / "mcp-bridge"
    return str(beside) if os.access(beside, os.X_OK) else "mcp-bridge"


def read_examples(path: Path) -> dict[str, Example]:
    """Read the file of examples.

    Raises:
        UsageError: it cannot be read as that.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {name: Example(call["tool"], call["arguments"]) for name, call in found.items()}
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        clause = 'allowed is {"INSTANCE": {"tool": "…", "arguments": {…}}}'
        raise UsageError(f"{path}: {clause}") from error


def place_words(places: Places) -> list[str]:
    """What `call` has to be told to find this proxy: its runtime directory, if it is not the usual.

    The rest it learns from the endpoint file there.
    """
    usual = default_places().runtime_dir == places.runtime_dir
    return [] if usual else ["--runtime-dir", str(places.runtime_dir)]
