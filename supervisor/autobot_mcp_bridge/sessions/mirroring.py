"""Which parameters clients mirror into headers: a server is asked for its tools, once (E5)."""

import asyncio

from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.model.errors import CallError
from autobot_mcp_bridge.model.mirrored import Mirrored, mirrored_of
from autobot_mcp_bridge.model.versions import Era
from autobot_mcp_bridge.sessions.catalog import Catalog
from autobot_mcp_bridge.sessions.pages import LookError, pages
from autobot_mcp_bridge.sessions.wishes import OWN_CALL

# Seconds for which a process that did not list its tools in time, busy perhaps, is not asked again.
PAUSE = 60.0

Found = dict[str, tuple[Mirrored, ...]]


class Mirroring:
    """The mirrored parameters of one server's tools, asked for by the first call that needs them.

    Calls that come meanwhile wait for the same answer. A list that takes longer than `OWN_CALL`
    seconds counts as far as it has come, and is asked for again after a while.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._asking: asyncio.Task[Found] | None = None
        self._partly: tuple[Found, Channel, float] | None = None  # of that process, until then

    async def find(self, channel: Channel, era: Era) -> Found:
        """By tool; never fails, for a list that nobody can get says nothing to clients either."""
        if self._catalog.mirrored is not None:
            return self._catalog.mirrored
        if self._partly is not None:
            found, whose, until = self._partly
            if channel is whose and asyncio.get_running_loop().time() < until:
                return found
            self._partly = None
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(channel, era))
            self._asking.add_done_callback(self._asked)
        # One caller that goes does not end it for the others.
        return await asyncio.shield(self._asking)

    def _asked(self, _task: asyncio.Task[Found]) -> None:
        self._asking = None

    async def _ask(self, channel: Channel, era: Era) -> Found:
        found: Found = {}
        changes = self._catalog.changes
        try:
            async with asyncio.timeout(OWN_CALL):
                async for page in pages(channel, era):
                    found |= mirrored_of(page.get("tools"))
        except LookError:
            pass  # as far as it has come
        except (CallError, TimeoutError):
            self._partly = found, channel, asyncio.get_running_loop().time() + PAUSE
            return found
        if self._catalog.changes == changes:
            self._catalog.mirrored = found
        return found
