"""What the layers above an instance are told."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.channels.greeting import greet
from autobot_mcp_bridge.model.death import Death
from autobot_mcp_bridge.model.versions import Era


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the layers above want to know of one server.

    Attributes:
        restored: awaited before a new process takes calls; bounded by RESTORE_TIMEOUT.
        adopted: told of a process that an earlier proxy has greeted.
        message: a notification of the server's that belongs to no call, and its line.
        started, crashed, dropped: counted as metrics.
        changed: `memo` gives something else.
        greet: says the first words; the era that is known, and seconds.
    """

    restored: Callable[[Channel], Coroutine[Any, Any, None]]
    adopted: Callable[[Channel], None]
    message: Callable[[dict[str, Any], bytes], None]
    started: Callable[[], None]
    crashed: Callable[[Death], None]
    dropped: Callable[[str], None]
    changed: Callable[[], None] = lambda: None
    greet: Callable[[Channel, Era | None, float], Coroutine[Any, Any, dict[str, Any]]] = greet
