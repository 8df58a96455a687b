"""The proxy's own look at the tools of a process: all pages of its list."""

from collections.abc import AsyncIterator
from typing import Any

from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.model.errors import METHOD_NOT_FOUND
from autobot_mcp_bridge.model.versions import Era
from autobot_mcp_bridge.sessions.dialects import own_request
from autobot_mcp_bridge.sessions.wishes import OWN_CALL

# Pages of tools/list that are read, and bytes of all of them.
MAX_PAGES = 50
MAX_LISTED = 4 << 20


class LookError(Exception):
    """The list cannot be had whole; the message is a sentence that says why."""


async def pages(channel: Channel, era: Era) -> AsyncIterator[dict[str, Any]]:
    """The result of each page; none of a server that has no tools.

    Each is waited for `OWN_CALL` seconds; who wants all within a time bounds that.

    Raises:
        LookError: the server refuses, or its list is larger than is read.
        CallError: it ended, took too long, or answered with what is no JSON.
    """
    params: dict[str, Any] = {}
    size = 0
    for _ in range(MAX_PAGES):
        call = channel.request(own_request(era, "tools/list", params), OWN_CALL)
        answer = await call.result()
        if answer.is_error:
            if not params and answer.parsed()["error"].get("code") == METHOD_NOT_FOUND:
                return
            raise LookError("the server refuses to list its tools")
        size += len(answer.line)
        if size > MAX_LISTED:
            raise LookError(f"the server's list of tools has more than {MAX_LISTED >> 20} MiB")
        result = answer.parsed()["result"]
        yield result
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str):
            return
        params = {"cursor": cursor}
    raise LookError(f"the server's list of tools has more than {MAX_PAGES} pages")
