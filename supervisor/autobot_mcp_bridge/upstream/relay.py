"""Messages from stdin to the upstream, and what it says to stdout: both eras, side by side.

A message passes byte for byte. Requests are on their way at once; notifications keep their order
among each other and before what follows them, except a cancellation, which waits for its request
only.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from autobot_mcp_bridge.model.errors import INVALID_REQUEST, PARSE_ERROR
from autobot_mcp_bridge.upstream.calls import Calls
from autobot_mcp_bridge.upstream.client import Client, Sending
from autobot_mcp_bridge.upstream.endings import (
    TEMPORARY,
    EndError,
    FailedError,
    SessionGoneError,
)
from autobot_mcp_bridge.upstream.failing import error_of, is_fatal, lacks_headers
from autobot_mcp_bridge.upstream.listening import Listening
from autobot_mcp_bridge.upstream.messages import Message, error_line, parse
from autobot_mcp_bridge.upstream.renewal import INITIALIZED, Renewal
from autobot_mcp_bridge.upstream.session import Session
from autobot_mcp_bridge.upstream.settings import Settings
from autobot_mcp_bridge.upstream.stdio import Output, tell

# Requests on their way; a server's own bound at the proxy is lower.
MOST_OPEN = 512
# Notifications and answers of the client, each for so many seconds.
NOTIFY_WITHIN = 10.0
DELETE_WITHIN = 2.0  # seconds that the end of the session may take
CANCELLED = "notifications/cancelled"
LISTEN = "subscriptions/listen"


@dataclass(slots=True)
class Open:
    """A request that has no answer yet."""

    message: Message
    sending: Sending = field(default_factory=Sending)
    task: asyncio.Task[None] | None = None


class Relay:
    """Keeps one conversation.

    Attributes:
        ended: why the program is to end, once it is.
    """

    def __init__(self, settings: Settings, client: Client, output: Output) -> None:
        self.ended: asyncio.Future[EndError] = asyncio.get_running_loop().create_future()
        self._settings = settings
        self._client = client
        self._output = output
        self._session = Session()
        self._calls = Calls(settings, client, self._session, output.write)
        self._renewal = Renewal(self._session, Calls(settings, client, self._session, _unheard))
        self._listening = Listening(settings, client, self._session, output.write)
        self._listens = False
        self._open: dict[tuple[type, object], Open] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, line: bytes) -> None:
        """One line of the client's."""
        if not line.strip():
            return
        message = parse(line)
        if message is None:
            code, text = (
                (INVALID_REQUEST, "batches are not passed on")
                if line.lstrip().startswith(b"[")
                else (PARSE_ERROR, "the line is no JSON-RPC message")
            )
            await self._output.write(error_line(None, text, code=code))
        elif message.is_request:
            await self._begin(message)
        elif message.method == CANCELLED:
            self._spawn(self._cancel(message))
        elif message.method:
            await self._tell(message)
            if message.method == INITIALIZED and self._session.version is not None:
                self._start_listening()
        elif self._session.version is not None:
            self._spawn(self._tell(message))  # an answer, to whom the upstream has asked

    async def close(self) -> None:
        """End all that is on its way, and the session; bounded."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session.id is None:
            return
        with suppress(FailedError, TimeoutError):
            async with asyncio.timeout(DELETE_WITHIN):
                async with self._client.request("DELETE", self._session.own_headers):
                    pass

    def end(self, why: EndError) -> None:
        """Have the program end; the first reason counts."""
        if not self.ended.done():
            self.ended.set_result(why)

    async def fail_open(self, text: str) -> None:
        """Answer all that is open with an error."""
        for each in list(self._open.values()):
            await self._output.write(error_line(each.message.id, text))

    # ---- requests ----

    async def _begin(self, message: Message) -> None:
        key = type(message.id), message.id
        if key in self._open or len(self._open) >= MOST_OPEN:
            text = "its id is in use" if key in self._open else f"{MOST_OPEN} requests are open"
            await self._output.write(error_line(message.id, text, code=INVALID_REQUEST))
            return
        self._open[key] = opened = Open(message)
        opened.task = self._spawn(self._carry(opened))
        opened.task.add_done_callback(lambda _: self._open.pop(key, None))

    async def _carry(self, opened: Open) -> None:
        message = opened.message
        self._renewal.note(message)
        try:
            try:
                await self._calls.carry(message, opened.sending)
            except FailedError as failed:
                if not (message.method == "tools/call" and lacks_headers(failed)):
                    raise
                await self._calls.learn_tools(message)
                await self._calls.carry(message, opened.sending)
            except SessionGoneError as gone:
                if gone.sent or not await self._renewed(gone.session):
                    raise
                await self._calls.carry(message, opened.sending)
        except SessionGoneError as gone:
            await self._output.write(error_line(message.id, self._gone))
            if not (gone.sent and self._settings.attended):
                self._lose_session(busy=True)
        except FailedError as failed:
            fatal, attended = is_fatal(message, failed), self._settings.attended
            if attended or not fatal:
                await self._output.write(error_of(message, failed))
            if fatal or (failed.is_out_of_reach and not attended and self._is_alone(opened)):
                self.end(EndError(failed.status, failed.text))

    def _is_alone(self, opened: Open) -> bool:
        """Whether nobody waits for another answer; a subscription is not waited for."""
        waits = (each for each in self._open.values() if each.message.method != LISTEN)
        return all(each is opened for each in waits)

    # ---- notifications and answers ----

    async def _tell(self, message: Message) -> None:
        """One that has no answer; what becomes of it only stderr hears."""
        try:
            async with asyncio.timeout(NOTIFY_WITHIN):
                await self._calls.deliver(message)
        except SessionGoneError:
            if not self._settings.attended:
                self._lose_session(busy=bool(self._open))
            # Else whatever it was about is gone, and the next request opens another session.
        except TimeoutError:
            tell(f"{message.method or 'an answer'} was not taken within {NOTIFY_WITHIN:.0f} s")
        except FailedError as failed:
            tell(f"{message.method or 'an answer'} was not delivered: {failed}")

    async def _cancel(self, message: Message) -> None:
        """At 2026-07-28 the end of the request's stream cancels; before, the notification does."""
        wanted = message.params.get("requestId")
        opened = self._open.get((type(wanted), wanted))
        if opened is None or opened.task is None or opened.message.method == "initialize":
            return
        if opened.message.version is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(NOTIFY_WITHIN):
                    await opened.sending.begun.wait()
            await self._tell(message)
        opened.task.cancel()

    def _start_listening(self) -> None:
        if not self._listens:
            self._listens = True
            self._spawn(self._listen())

    async def _listen(self) -> None:
        try:
            await self._listening.run()
        except SessionGoneError:
            if not self._settings.attended:
                self._lose_session(busy=bool(self._open))
        except FailedError as failed:
            self.end(EndError(failed.status, failed.text))
        finally:
            self._listens = False

    # ---- the session ----

    async def _renewed(self, lost: str) -> bool:
        """Whether there is another session in the place of the one that is not known any more.

        Raises:
            FailedError: there could not be.
        """
        if not self._settings.attended or not await self._renewal.renew(lost):
            return False
        self._start_listening()
        return True

    @property
    def _gone(self) -> str:
        return f"{self._settings.place} no longer knows this session"

    def _lose_session(self, *, busy: bool) -> None:
        """It is over; while nobody waits for an answer, that is no failure."""
        self._session.id = None  # nothing is left to be deleted
        self.end(EndError(TEMPORARY if busy else 0, self._gone))

    def _spawn(self, doing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _unheard(line: bytes) -> None:
    """What comes of the program's own requests."""
