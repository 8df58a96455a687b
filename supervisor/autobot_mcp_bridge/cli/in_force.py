"""Waiting until the running proxy serves a server as its files say now."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from autobot_mcp_bridge.cli import control
from autobot_mcp_bridge.cli.common import note
from autobot_mcp_bridge.config.errors import LEFT_OUT, DeniedError
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.names import ServerId
from autobot_mcp_bridge.model.states import State

# Apply takes 1 to 2 s, and a server that is stopped by its own protocol timeouts.stop, 10 s.
WITHIN = 20.0
POLL = 0.2
Row = Mapping[str, Any]


Done = Callable[[Row | None], bool]


def wait(places: Places, server: ServerId, done: Done) -> Row | None:
    """As `wait_for_all`, for one server."""
    return wait_for_all(places, {server: done}).get(server)


def wait_for_all(places: Places, wanted: Mapping[ServerId, Done]) -> dict[ServerId, Row]:
    """Wait, for WITHIN seconds, until what the proxy says of each server is as wanted.

    Blocks. What it says then; nothing of any where no proxy runs that could be asked, and nothing
    of those that have not come to it, which is said on stderr.
    """
    control.tell(places)  # one that reads the files itself does so now
    deadline = time.monotonic() + WITHIN
    while True:
        try:
            found = control.status(places)
        except DeniedError:
            return {}
        if found is None:
            return {}
        rows = {row["instance"]: row for row in found["servers"]}
        ready = {
            server: rows.get(server.instance)
            for server, done in wanted.items()
            if done(rows.get(server.instance))
        }
        if len(ready) == len(wanted) or time.monotonic() > deadline:
            break
        time.sleep(POLL)
    if late := [str(server) for server in wanted if server not in ready]:
        text = f"not in force yet, after {WITHIN:g} s: {', '.join(late)}"
        note(f"{text}; `mcp-bridge check` and `list` tell more")
    return {server: row for server, row in ready.items() if row is not None}


def is_served(row: Row | None) -> bool:
    return row is not None and row["state"] != State.DISABLED


def is_disabled(row: Row | None) -> bool:
    return row is not None and row["state"] == State.DISABLED


def say(server: ServerId, row: Row | None) -> int:
    """Say what keeps a server that is to be served from it; the exit status."""
    if row is None:
        return 0
    if row["refused"]:
        note(f"{server} is not served so: {row['refused']}")
        return LEFT_OUT
    if row["state"] in (State.INSTALL_FAILED, State.CREDENTIAL_MISSING):
        note(f"{server} waits: {row['detail']}")
    elif row["state"] == State.INSTALLING:
        note(f"{server} can be called once its package is installed")
    return 0
