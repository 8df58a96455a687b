"""What a server says of its tools, for the chain: asked of the process once, when a call needs it."""

import asyncio
from collections.abc import Callable
from typing import Any

from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.model.versions import Era
from autobot_mcp_bridge.policy.descriptor import Descriptor
from autobot_mcp_bridge.sessions.catalog import MAX_LISTED
from autobot_mcp_bridge.sessions.dialects import own_request
from autobot_mcp_bridge.sessions.mirroring import MAX_PAGES
from autobot_mcp_bridge.sessions.wishes import OWN_CALL

Found = dict[str, Descriptor]


class Descriptors:
    """The tools of one process by name.

    A list that is not whole counts as none: what cannot be looked at is not called.

    Args:
        changes: a number that is another once what was asked for counts no more.
    """

    def __init__(self, changes: Callable[[], int]) -> None:
        self._changes = changes
        self._known: tuple[Channel, int, Found] | None = None
        self._asking: asyncio.Task[Found] | None = None

    async def find(self, channel: Channel, era: Era, name: str) -> Descriptor | None:
        """The tool's descriptor, or None if the server lists no such tool.

        Calls that come while the list is asked for wait for the same answer.

        Raises:
            CallError: the server does not give its list.
        """
        known = self._known
        if known is not None and known[0] is channel and known[1] == self._changes():
            return known[2].get(name)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(channel, era))
            self._asking.add_done_callback(self._asked)
        # One caller that goes does not end it for the others.
        return (await asyncio.shield(self._asking)).get(name)

    def _asked(self, task: "asyncio.Task[Found]") -> None:
        self._asking = None
        if not task.cancelled():
            task.exception()  # told to those who wait, if any do

    async def _ask(self, channel: Channel, era: Era) -> Found:
        changes = self._changes()
        try:
            async with asyncio.timeout(OWN_CALL):
                found = await self._read(channel, era)
        except TimeoutError:
            raise _unknown("in time") from None
        if self._changes() == changes:
            self._known = channel, changes, found
        return found

    async def _read(self, channel: Channel, era: Era) -> Found:
        found: Found = {}
        params: dict[str, Any] = {}
        size = 0
        for _ in range(MAX_PAGES):
            call = channel.request(own_request(era, "tools/list", params), OWN_CALL)
            answer = await call.result()
            size += len(answer.line)
            if answer.is_error or size > MAX_LISTED:
                raise _unknown("as a list of bounded size")
            result = answer.parsed()["result"]
            tools = result.get("tools")
            for tool in tools if isinstance(tools, list) else ():
                if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                    found.setdefault(name, Descriptor(tool))
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                return found
            params = {"cursor": cursor}
        raise _unknown(f"within {MAX_PAGES} pages")


def _unknown(why: str) -> CallError:
    text = f"the server does not list its tools {why}, so that no call can be checked"
    return CallError(Cause.SCHEMA_UNUSABLE, text, retry_after=1)
