"""The session's own stream: what the upstream says that belongs to no request (GET)."""

import asyncio

from autobot_mcp_bridge.upstream.answers import kind_of, refusal, streamed
from autobot_mcp_bridge.upstream.calls import Write
from autobot_mcp_bridge.upstream.client import STREAM, Client
from autobot_mcp_bridge.upstream.endings import FailedError, SessionGoneError
from autobot_mcp_bridge.upstream.events import Events
from autobot_mcp_bridge.upstream.messages import parse
from autobot_mcp_bridge.upstream.session import LAST_EVENT_HEADER, SESSION_HEADER, Session
from autobot_mcp_bridge.upstream.settings import Settings

# Seconds until a stream that has ended is opened again, where its server has no wish; doubled at each
# failure up to the longest.
RETRY, LONGEST = 1.0, 30.0
# Failures in a row, about half a minute of them, after which an upstream counts as gone.
MOST_FAILURES = 5
# It has no such stream (405 by the specification), or not for us.
_NOT_OFFERED = frozenset({400, 403, 404, 405, 406, 501})


class Listening:
    """Reads that stream for as long as the session lasts."""

    def __init__(self, settings: Settings, client: Client, session: Session, write: Write) -> None:
        self._settings = settings
        self._client = client
        self._session = session
        self._write = write
        self._failures = 0

    async def run(self) -> None:
        """Pass on what comes; returns when the upstream offers no such stream.

        Raises:
            FailedError: it cannot be reached any more.
            SessionGoneError: it no longer knows the session.
        """
        events = Events(self._settings.most)
        while True:
            try:
                if not await self._read(events):
                    return
                pause = RETRY
            except FailedError as failed:
                self._failures += 1
                if self._failures >= MOST_FAILURES and not self._settings.attended:
                    raise
                pause = float(failed.retry_after or min(RETRY * 2**self._failures, LONGEST))
            await asyncio.sleep(max(pause, events.retry or 0.0))

    async def _read(self, events: Events) -> bool:
        """One connection to its end; whether there is such a stream."""
        headers = {**self._session.own_headers, "Accept": STREAM}
        if events.last_id is not None:
            headers[LAST_EVENT_HEADER] = events.last_id
        async with self._client.request("GET", headers) as response:
            if response.status == 404 and SESSION_HEADER in headers:
                raise SessionGoneError(headers[SESSION_HEADER])
            if response.status == 400 and events.last_id is not None:
                events.last_id = None  # it is not kept any more: from now on, then
                return True
            if response.status in _NOT_OFFERED:
                return False
            if response.status != 200:
                raise await refusal(response, self._settings)
            if kind_of(response) != STREAM:
                return False
            self._failures = 0
            async for data in streamed(response, events):
                if (found := parse(data)) is not None:
                    await self._write(found.line)
        return True
