"""One request in flight to a server."""

import asyncio
from collections.abc import Callable
from typing import Any

from autobot_mcp_bridge.channels.backlog import Backlog
from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.errors import CallError


class Call:
    """One request in flight.

    `wake` is done when there is something to do: an answer or a failure has come, a notification
    waits in `events`, or a keep-alive is due.
    """

    __slots__ = (
        "answer",
        "began",
        "deadline",
        "error",
        "events",
        "intercept",
        "log_level",
        "number",
        "owner",
        "parked",
        "size",
        "streamable",
        "timeout",
        "token",
        "touched",
        "wake",
    )

    def __init__(self, number: int, timeout: float, now: float, owner: object) -> None:
        self.number = number
        self.owner = owner
        self.timeout = timeout
        self.began = now
        self.deadline = now + timeout
        self.touched = now
        self.token: Any = None  # the client's progress token; None: it asked for no progress
        self.log_level: str | None = None  # of a request that asked for logs by itself
        # Sees an answer first; with True it has taken it, and the call goes on.
        self.intercept: Callable[[Answer], bool] | None = None
        self.size = 0  # bytes of what was sent
        self.parked = False  # its client has been asked something
        self.answer: Answer | None = None
        self.error: CallError | None = None
        self.events: Backlog | None = None  # made for the first one
        self.streamable = False
        self.wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def done(self) -> bool:
        return self.answer is not None or self.error is not None

    def ring(self) -> None:
        if not self.wake.done():
            self.wake.set_result(None)

    def deafen(self) -> None:
        """Nobody reads its stream any more."""
        self.streamable = False
        if self.events is not None:
            self.events.clear()

    async def result(self) -> Answer:
        """Wait for the answer alone.

        Raises:
            CallError: there is none.
        """
        while not self.done:
            if self.wake.done():  # rung for something else, or cancelled with who waited before
                self.wake = asyncio.get_running_loop().create_future()
            await self.wake
        if self.error is not None:
            raise self.error
        assert self.answer is not None  # noqa: S101 - done means one of the two
        return self.answer
