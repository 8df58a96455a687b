"""One message over HTTP: sent, tried again where that is safe, its answer read to the end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import orjson
from aiohttp import ClientResponse

from autobot_mcp_bridge.upstream.answers import kind_of, refusal, streamed, whole
from autobot_mcp_bridge.upstream.client import JSON, STREAM, Client, Sending
from autobot_mcp_bridge.upstream.endings import FailedError, SessionGoneError
from autobot_mcp_bridge.upstream.events import Events
from autobot_mcp_bridge.upstream.messages import REPEATABLE, Message, parse
from autobot_mcp_bridge.upstream.session import LAST_EVENT_HEADER, SESSION_HEADER, Session
from autobot_mcp_bridge.upstream.settings import Settings

# Seconds before the second try, and before the third, which is the last.
PAUSES = (0.2, 0.6)
# Tries of a stream whose connection broke, each after the time that its server wishes.
RESUMES = 3
RETRY = 1.0  # seconds, where the server has no wish
# What the program asks for itself: pages of tools/list, within so many seconds.
MOST_PAGES, LEARN_WITHIN = 50, 10.0
Write = Callable[[bytes], Awaitable[None]]


class Calls:
    """Carries messages to the upstream.

    Args:
        settings: where to.
        client: by which.
        session: to which its messages belong.
        write: takes what comes back, a message each.
    """

    def __init__(self, settings: Settings, client: Client, session: Session, write: Write) -> None:
        self._settings = settings
        self._client = client
        self._session = session
        self._write = write

    async def carry(self, message: Message, sending: Sending) -> None:
        """A request, until its answer has been written.

        Raises:
            FailedError: there is none.
            SessionGoneError: the upstream no longer knows the session.
        """
        events = Events(self._settings.most)
        try:
            async with self._post(message, sending) as response:
                if await self._read(message, response, events):
                    return
        except FailedError as failed:
            # A stream that has begun, and names its events, can be gone on with.
            if failed.http is not None or events.last_id is None or message.version is not None:
                raise
        await self._resume(message, events)

    async def deliver(self, message: Message) -> None:
        """A notification or an answer.

        Raises:
            FailedError: it was not accepted.
            SessionGoneError: the upstream no longer knows the session.
        """
        async with self._post(message, Sending()):
            pass

    async def learn_tools(self, because: Message) -> None:
        """Ask for the upstream's tools, for the headers that calls of them need.

        Raises:
            FailedError: it does not say.
        """
        params = {"_meta": because.params["_meta"]} if "_meta" in because.params else {}
        asked = {"jsonrpc": "2.0", "id": "mcp-bridge", "method": "tools/list", "params": params}
        cursor: str | None = None
        try:
            async with asyncio.timeout(LEARN_WITHIN):
                for _ in range(MOST_PAGES):
                    more = {} if cursor is None else {"cursor": cursor}
                    page = parse(orjson.dumps({**asked, "params": {**params, **more}}))
                    cursor = None if page is None else await self._page(page)
                    if cursor is None:
                        return
        except TimeoutError:
            raise FailedError(f"no tools/list within {LEARN_WITHIN:.0f} s") from None

    async def _page(self, asked: Message) -> str | None:
        async with self._post(asked, Sending()) as response:
            async for data in self._messages(response, Events(self._settings.most)):
                if (found := parse(data)) is not None and found.answers(asked):
                    return self._session.tools.learn(found)
        return None

    @asynccontextmanager
    async def _post(self, message: Message, sending: Sending) -> AsyncIterator[ClientResponse]:
        """An answer with a status of success.

        Raises:
            FailedError: there is none, also after further tries where those are safe.
            SessionGoneError: as above.
        """
        headers = self._session.headers(message)
        entered = False
        for pause in (*PAUSES, None):
            sending.written = False
            try:
                async with self._client.request("POST", headers, message.line, sending) as response:
                    entered = True
                    await self._check(response, headers)
                    yield response
                    return
            except FailedError as failed:
                safe = not failed.sent or message.method in REPEATABLE
                if entered or pause is None or not (safe and failed.passing):
                    raise
            await asyncio.sleep(pause)

    async def _check(self, response: ClientResponse, headers: dict[str, str]) -> None:
        if 200 <= response.status < 300:
            return
        if response.status == 404 and SESSION_HEADER in headers:
            raise SessionGoneError(headers[SESSION_HEADER])
        raise await refusal(response, self._settings)

    async def _read(self, message: Message, response: ClientResponse, events: Events) -> bool:
        """Pass on what comes; whether the answer was there."""
        async for data in self._messages(response, events):
            found = parse(data)
            if found is None:
                continue  # the upstream must not, and nobody could read it
            done = found.answers(message)
            if done and message.method == "initialize":
                self._session.begin(found, response.headers.get(SESSION_HEADER))
            if done and message.method == "tools/list" and message.version is not None:
                self._session.tools.learn(found)
            await self._write(found.line)
            if done:
                return True
        if events.last_id is None or message.version is not None:
            raise FailedError(f"{self._settings.place}: the connection ended before the answer")
        return False

    async def _messages(self, response: ClientResponse, events: Events) -> AsyncIterator[bytes]:
        match kind_of(response):
            case kind if kind == JSON:
                yield await whole(response, self._settings.most)
            case kind if kind == STREAM:
                async for data in streamed(response, events):
                    yield data
            case kind:
                place, shown = self._settings.place, kind[:100] or "nothing"
                raise FailedError(f"{place} answers with {shown}, where {JSON} is due")

    async def _resume(self, message: Message, events: Events) -> None:
        """Fetch the rest of a stream by its last event's id (2025-11-25, Resumability).

        Raises:
            FailedError: it is not to be had.
            SessionGoneError: as above.
        """
        left, last = RESUMES - 1, events.last_id
        while True:
            await asyncio.sleep(RETRY if events.retry is None else events.retry)
            headers = {**self._session.own_headers, LAST_EVENT_HEADER: events.last_id or ""}
            try:
                async with self._client.request("GET", headers) as response:
                    await self._check(response, headers)
                    if await self._read(message, response, events):
                        return
            except SessionGoneError as gone:
                raise SessionGoneError(gone.session, sent=True) from None
            except FailedError as failed:
                if failed.http is not None or left == 0:
                    raise
            left = left - 1 if events.last_id == last else RESUMES - 1
            last = events.last_id
            if left < 0:
                raise FailedError(f"{self._settings.place}: the answer's stream broke off")
