"""What the layers above an instance are told."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.channels.greeting import greet
from autobot_mcp_bridge.model.death import Death
from autobot_mcp_bridge.model.versions import Era


async def _nothing(_channel: Channel) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the layers above want to know of one server.

    Attributes:
        restored: awaited before a new process takes calls; bounded by RESTORE_TIMEOUT.
        adopted: told of a process that an earlier proxy has greeted.
        message: a notification of the server's that belongs to no call, and its line.
        started, crashed, dropped: counted as metrics.
        changed: `memo` gives something else.
        asked: a request of the server's and its line; False when nobody can be given it.
        over: a process has ended, and no other of the same start follows.
        greet: says the first words; the era that is known, and seconds.
    """

    started: Callable[[], None]
    crashed: Callable[[Death], None]
    dropped: Callable[[str], None]
    changed: Callable[[], None] = lambda: None
    restored: Callable[[Channel], Coroutine[Any, Any, None]] = _nothing
    adopted: Callable[[Channel], None] = lambda _channel: None
    message: Callable[[dict[str, Any], bytes], None] = lambda _message, _line: None
    asked: Callable[[dict[str, Any], bytes], bool] = lambda _message, _line: False
    over: Callable[[], None] = lambda: None
    greet: Callable[[Channel, Era | None, float], Coroutine[Any, Any, dict[str, Any]]] = greet
