"""Spans on their way to a collector: OTLP over HTTP, in its JSON form.

Nothing here holds up a call: spans wait in a bounded queue, one task sends them, and what a
collector does (nothing, late, without end, elsewhere) costs spans alone, which are counted.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

import aiohttp
import orjson

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.config.tracing import TraceExport

# Spans that wait, some 1 KiB each; and of one request.
MAX_QUEUE = 2048
MAX_BATCH = 256
# Seconds between tries of what a collector could not take now (OTLP, section Retryable responses).
PAUSES = (1.0, 2.0, 4.0)
RETRYABLE = frozenset({429, 502, 503, 504})
# Of an answer: it says how many spans were not taken, and why.
MAX_ANSWER = 64 * 1024
# Seconds at the proxy's end.
FLUSH = 3.0
SCOPE = "autobot-mcp-bridge"

log = logging.getLogger(__name__)


class Exporter:
    """`async with Exporter(…)`: sends until the block ends, and then for FLUSH seconds more.

    Attributes:
        exported: spans that the collector has taken.
        dropped: spans that it will not have, by why (`DROPS`).
    """

    def __init__(self, settings: TraceExport) -> None:
        self.exported = 0
        self.dropped: Counter[str] = Counter()
        self._settings = settings
        self._queue: deque[bytes] = deque()
        self._some, self._full = asyncio.Event(), asyncio.Event()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._well = True
        scope = {"name": SCOPE, "version": __version__}
        told = [{"key": k, "value": {"stringValue": v}} for k, v in settings.resource.items()]
        self._head = (
            b'{"resourceSpans":[{"resource":'
            + orjson.dumps({"attributes": told})
            + b',"scopeSpans":[{"scope":'
            + orjson.dumps(scope)
            + b',"spans":['
        )

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="export of spans")
        return self

    async def __aexit__(self, *exc: object) -> None:
        for event in (self._closing, self._some, self._full):
            event.set()
        if self._task is not None:
            _, late = await asyncio.wait((self._task,), timeout=FLUSH)
            for task in late:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        self.dropped["stopped"] += len(self._queue)
        self._queue.clear()

    def put(self, span: bytes) -> None:
        """Take a span to send; one for which there is no room is counted, and gone."""
        if len(self._queue) >= MAX_QUEUE:
            self.dropped["queue_full"] += 1
            return
        self._queue.append(span)
        self._some.set()
        if len(self._queue) >= MAX_BATCH:
            self._full.set()

    async def _run(self) -> None:
        timeout = aiohttp.ClientTimeout(total=self._settings.timeout)
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=1),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=timeout,
            auto_decompress=False,  # a few bytes could unpack to any size
        ) as client:
            while True:
                await self._some.wait()
                await _set_within(self._full, self._settings.delay)
                batch = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_BATCH))]
                if batch:
                    await self._deliver(client, batch)
                if not self._queue:
                    if self._closing.is_set():
                        return
                    self._some.clear()
                if len(self._queue) < MAX_BATCH and not self._closing.is_set():
                    self._full.clear()

    async def _deliver(self, client: aiohttp.ClientSession, batch: Sequence[bytes]) -> None:
        """Send some spans, again where that may help; they are counted whatever happens."""
        body = b"".join((self._head, b",".join(batch), b"]}]}]}"))
        left = "stopped"
        try:
            for pause in (*PAUSES, None):
                rejected, why, again = await self._post(client, body)
                if not why:
                    left = ""
                    self.exported += len(batch) - rejected
                    self.dropped["rejected"] += rejected
                    break
                if not again or pause is None:
                    left = "undelivered" if again else "rejected"
                    break
                self._tell(why)
                await _set_within(self._closing, pause)
            self._tell(why)
        except Exception:
            # The top of what a collector reaches: it costs these spans alone.
            log.exception("fault while exporting spans")
            left = "undelivered"
        finally:
            if left:
                self.dropped[left] += len(batch)

    async def _post(self, client: aiohttp.ClientSession, body: bytes) -> tuple[int, str, bool]:
        """Spans that were not taken; what went wrong, "" for nothing; whether to try again."""
        settings = self._settings
        headers = {**settings.headers, "Content-Type": "application/json"}
        try:
            async with client.post(
                settings.url, data=body, headers=headers, allow_redirects=False
            ) as response:
                if response.status // 100 == 2:
                    return _rejected(await _bounded(response)), "", False
                again = response.status in RETRYABLE
                return 0, f"status {response.status}", again
        except TimeoutError:
            return 0, f"no answer within {settings.timeout:g} s", True
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # The text of an error may hold what was sent.
            return 0, type(error).__name__, True

    def _tell(self, why: str) -> None:
        """Once when it goes wrong, and once when it goes well again."""
        if why and self._well:
            log.warning("spans are not taken by %s: %s", self._settings.shown, why)
        elif not why and not self._well:
            log.warning("spans are taken by %s again", self._settings.shown)
        self._well = not why


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    """The beginning of an answer: what is more is not read, and its connection ends."""
    parts: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_ANSWER:
            response.close()
            break
    return b"".join(parts)


def _rejected(answer: bytes) -> int:
    """Of an answer that says all is well, how many spans were not taken all the same."""
    try:
        found = orjson.loads(answer)["partialSuccess"]["rejectedSpans"]
        return min(max(0, int(found)), MAX_BATCH)
    except (ValueError, TypeError, KeyError):
        return 0
