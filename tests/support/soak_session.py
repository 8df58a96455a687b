"""The handshake sessions of a soak."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from support.client import Session, answer_to, text_of
from support.soaked import ELICIT, UPDATED, WITHIN, filled_in, same
from support.wire import Stream

if TYPE_CHECKING:
    from support.soak import Soak

# Of a progress notification: both are the nonce.
NAMES = ("progressToken", "message")


class Talk:
    """A handshake session, used by several clients at once, opened again when it has ended."""

    def __init__(self, soak: "Soak") -> None:
        self._soak = soak
        self._client: Session | None = None
        self._opening = asyncio.Lock()
        self._began = 0.0
        self._after: str | None = None  # the last event that its own stream has brought
        self.uri = f"own:///{soak.nonce()}"

    async def _open(self) -> Session | None:
        async with self._opening:
            if self._client is None:
                client = self._soak.bridge.session(
                    self._soak.instance, ids=itertools.count(), opened=False
                )
                self._began = time.monotonic()
                if await self._soak.account("initialize", self._initialize(client)) is None:
                    self._client, self._after = client, None
                else:
                    await client.drop()
            return self._client

    async def _initialize(self, client: Session) -> dict[str, Any]:
        message = client.initialize_of("initialize")
        response = await client.send(message, within=WITHIN)
        answer = answer_to(response, message["id"])
        if "result" in answer:
            client.session = response.header("Mcp-Session-Id")
            client.version = answer["result"]["protocolVersion"]
            await client.notify("notifications/initialized")
            await client.request("resources/subscribe", {"uri": self.uri}, within=WITHIN)
        return answer

    async def _do(self, what: str, deed: Callable[[Session], Awaitable[Any]]) -> None:
        client = await self._open()
        if client is None:
            return
        since = self._began if self._soak.kind.isolated else None
        error = await self._soak.account(what, deed(client), since)
        if error is not None and self._soak.kind.isolated and self._client is client:
            self._client = None  # its session has ended, or will be found to have
            await client.drop()

    async def act(self) -> None:
        asks = "handshake" in self._soak.kind.asks
        await self._do("handshake call", lambda client: self._soak.call(client, asks=asks))

    async def hear(self) -> None:
        """Read the session's own stream for a while, and break it in the middle."""
        await self._do("GET stream", self._heard)

    async def _heard(self, client: Session) -> dict[str, Any] | None:
        for _ in range(3):
            # What another process's session has brought says nothing here.
            stream = await client.listen(self._after if self._client is client else None)
            try:
                if stream.status != 200:
                    self._after = None
                    return {"error": (await stream.json()).get("error")}
                await client.call("touch", {"uri": self.uri}, within=WITHIN)
                with suppress(TimeoutError):
                    while (told := await stream.event(within=1.0)) is not None:
                        if told["method"] == UPDATED:
                            self._soak.check(told, self.uri, None)
                        elif told["method"] == ELICIT:
                            answer = filled_in(told["params"]["message"])
                            reply = {"jsonrpc": "2.0", "id": told["id"], "result": answer}
                            await client.send(reply, within=WITHIN)
                if self._client is client:
                    self._after = stream.last_id or self._after
            finally:
                stream.reset()
        return None

    async def come_back(self) -> None:
        """Break the stream of a call after its first event, and get the rest by its id."""
        await self._do("call resumed", self._resumed)

    async def _resumed(self, client: Session) -> dict[str, Any]:
        nonce, ident = self._soak.nonce(), next(client.ids)
        arguments = {"nonce": nonce, "steps": 4, "delay": 0.1}
        message = client.call_of("progress", arguments, ident, nonce)
        seen: list[int] = []
        stream = await client.open_stream(message)
        try:
            if not stream.is_stream:
                answer = await stream.json()
            elif (answer := await self._some(stream, nonce, ident, seen, until=1)) is None:
                stream.reset()
                stream = await client.listen(stream.last_id)
                if stream.status != 200:
                    return {"error": (await stream.json()).get("error")}
                answer = await self._some(stream, nonce, ident, seen)
        finally:
            stream.reset()
        if answer is None:
            raise EOFError("the stream ended before the answer")
        if "result" in answer:
            same(nonce, text_of(answer))
            same([1, 2, 3, 4], seen)
        return answer

    async def _some(
        self, stream: Stream, nonce: str, ident: object, seen: list[int], until: int = 10
    ) -> dict[str, Any] | None:
        """The answer; None when the stream has ended, or so many steps were seen."""
        while len(seen) < until and (message := await stream.event(within=WITHIN)) is not None:
            if "method" not in message:
                same(ident, message["id"])
                found: dict[str, Any] = message
                return found
            if message["method"] == "notifications/progress":
                same((nonce, nonce), tuple(message["params"][k] for k in NAMES))
                seen.append(message["params"]["progress"])
        return None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.delete()
            await self._client.drop()
