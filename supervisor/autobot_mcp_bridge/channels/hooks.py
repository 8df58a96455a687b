"""What the layers above an instance are told."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.model.death import Death


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the layers above want to know of one server.

    Attributes:
        restored: awaited before a new process takes calls; bounded by RESTORE_TIMEOUT.
        message: a notification of the server's that belongs to no call, and its line.
        started, crashed, dropped: counted as metrics.
        changed: `memo` gives something else.
    """

    restored: Callable[[Channel], Coroutine[Any, Any, None]]
    message: Callable[[dict[str, Any], bytes], None]
    started: Callable[[], None]
    crashed: Callable[[Death], None]
    dropped: Callable[[str], None]
    changed: Callable[[], None] = lambda: None
