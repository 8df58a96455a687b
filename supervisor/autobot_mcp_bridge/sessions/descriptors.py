"""What a process says of its tools, asked of it once, when something needs it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.versions import Era
from autobot_mcp_bridge.policy.descriptor import Descriptor
from autobot_mcp_bridge.sessions.pages import LookError, pages
from autobot_mcp_bridge.sessions.wishes import OWN_CALL


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """A process's whole list.

    Attributes:
        changes: the number of `Descriptors` that counted then.
        tools: as the process has written them.
        by_name: of several of one name, the first.
    """

    channel: Channel
    changes: int
    tools: list[Any]
    by_name: dict[str, Descriptor]


class Descriptors:
    """The tools of one process.

    A list that is not whole counts as none: what cannot be looked at is not called.

    Args:
        changes: a number that is another once what was asked for counts no more.
    """

    def __init__(self, changes: Callable[[], int]) -> None:
        self._changes = changes
        self._known: Look | None = None
        self._asking: tuple[Channel, asyncio.Task[Look]] | None = None

    async def find(self, channel: Channel, era: Era, name: str) -> Descriptor | None:
        """The tool's descriptor, or None if the server lists no such tool.

        Raises:
            CallError: the server does not give its list.
        """
        try:
            return (await self.look(channel, era)).by_name.get(name)
        except LookError as error:
            text = f"no call can be checked: {error}"
            raise CallError(Cause.SCHEMA_UNUSABLE, text, retry_after=1) from None

    def counts(self, look: Look) -> bool:
        """Tell whether nothing has been heard of a change since."""
        return look.changes == self._changes()

    async def look(self, channel: Channel, era: Era) -> Look:
        """The list of this process; who comes while it is asked for waits for the same answer.

        Raises:
            LookError: it cannot be had whole; the next who asks tries again.
            CallError: the process has ended.
        """
        known = self._known
        if known is not None and known.channel is channel and self.counts(known):
            return known
        if self._asking is None or self._asking[0] is not channel:
            task = asyncio.create_task(self._ask(channel, era))
            task.add_done_callback(self._asked)
            self._asking = channel, task
        # One caller that goes does not end it for the others.
        return await asyncio.shield(self._asking[1])

    def _asked(self, task: "asyncio.Task[Look]") -> None:
        if self._asking is not None and self._asking[1] is task:
            self._asking = None
        if not task.cancelled():
            task.exception()  # told to those who wait, if any do

    async def _ask(self, channel: Channel, era: Era) -> Look:
        changes = self._changes()
        tools: list[Any] = []
        try:
            async with asyncio.timeout(OWN_CALL):
                async for page in pages(channel, era):
                    listed = page.get("tools")
                    tools += listed if isinstance(listed, list) else ()
        except (CallError, TimeoutError) as error:
            if isinstance(error, CallError) and error.cause is not Cause.CALL_TIMEOUT:
                raise
            raise LookError(f"the server has not listed its tools in {OWN_CALL:g} s") from None
        by_name: dict[str, Descriptor] = {}
        for tool in tools:
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                by_name.setdefault(name, Descriptor(tool))
        look = Look(channel, changes, tools, by_name)
        if self.counts(look):
            self._known = look
        return look
