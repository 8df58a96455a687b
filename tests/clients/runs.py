"""Every real client in each mode that it can be told to use, and what it makes of a good server."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from clients import drivers
from clients.drivers import Seen, Target

LATEST = "2025-11-25"
MODERN = "2026-07-28"
Drive = Callable[[Target, Path], Awaitable[Seen]]


@dataclass(frozen=True, slots=True)
class Run:
    """A client in a mode.

    Attributes:
        version: the revision that it negotiates with a server of both eras.
        tells: whether it says which; those that do not are taken at their word.
        progress: whether it hands on progress.
        elicits: whether it answers elicitations.
        needs: what it has to have beside the clients from npm: a name for `need`.
    """

    name: str
    drive: Drive
    version: str
    tells: bool = True
    progress: bool = True
    elicits: bool = True
    needs: str = "clients"

    def __str__(self) -> str:
        return self.name

    @property
    def told(self) -> str:
        return self.version if self.tells else ""


def _mode(drive: Callable[..., Awaitable[Seen]], mode: str) -> Drive:
    async def run(target: Target, state: Path) -> Seen:
        return await drive(target, mode, state)

    return run


def _runs(
    name: str, drive: Callable[..., Awaitable[Seen]], modes: dict[str, str], **more: Any
) -> list[Run]:
    return [
        Run(f"{name}-{mode}", _mode(drive, mode), version, **more)
        for mode, version in modes.items()
    ]


_SILENT: dict[str, Any] = {"tells": False, "progress": False, "elicits": False}
RUNS = (
    *_runs("mcp", drivers.python_mcp, {"auto": MODERN, "legacy": LATEST, MODERN: MODERN}),
    *_runs("fastmcp", drivers.fastmcp, {"auto": MODERN, "legacy": LATEST}, needs="fastmcp"),
    Run("fastmcp-command", drivers.fastmcp_command, MODERN, needs="fastmcp", **_SILENT),
    *_runs("ts-v1", partial(drivers.node_script, "ts_v1.mjs"), {"handshake": LATEST}),
    *_runs(
        "ts-v2",
        partial(drivers.node_script, "ts_v2.mjs"),
        {"auto": MODERN, "legacy": LATEST, MODERN: MODERN},
    ),
    *_runs(
        "inspector",
        drivers.inspector,
        {"auto": MODERN, "legacy": LATEST, "modern": MODERN},
        **_SILENT,
    ),
    Run("mcp-remote", drivers.mcp_remote, LATEST),
    Run("mcp-proxy", drivers.mcp_proxy, LATEST, elicits=False, needs="mcp-proxy"),
    Run("supergateway", drivers.supergateway, LATEST, progress=False, elicits=False),
)
