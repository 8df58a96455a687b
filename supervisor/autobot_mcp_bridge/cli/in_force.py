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


def wait(places: Places, server: ServerId, done: Callable[[Row | None], bool]) -> Row | None:
    """Wait, for WITHIN seconds, until what the proxy says of the server satisfies `done`.

    Blocks. What it says then; None where no proxy runs that could be asked, and where it has not
    come to that, which is said on stderr.
    """
    control.tell(places)  # one that reads the files itself does so now
    deadline = time.monotonic() + WITHIN
    while True:
        try:
            found = control.status(places)
        except DeniedError:
            return None
        if found is None:
            return None
        row = next((row for row in found["servers"] if row["instance"] == server.instance), None)
        if done(row):
            return row
        if time.monotonic() > deadline:
            break
        time.sleep(POLL)
    note(f"it is not in force yet, after {WITHIN:g} s; `mcp-bridge check` and `list` tell more")
    return None


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
