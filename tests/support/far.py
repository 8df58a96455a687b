"""A remote end that does as it is told: the smallest MCP server over HTTP, for what goes wrong."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Self

from aiohttp import web

from autobot_mcp_bridge.model.versions import META_CAPABILITIES, META_VERSION, MODERN

RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "far", "version": "1"},
    },
    "tools/list": {"tools": []},
    "tools/call": {"content": [{"type": "text", "text": "called"}]},
}
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
OWN_META = {META_VERSION: MODERN, META_CAPABILITIES: {}}
Answers = Callable[[web.Request, Any], Awaitable[web.StreamResponse]]


class Far:
    """`async with Far() as far`: at `far.url`, on one port for its whole life.

    Args:
        host: the address that it listens on.
        port: 0: any.
        context: with it, by TLS.

    Attributes:
        status: of every answer to a POST, where it is not 200; with `more`, its headers.
        answers: instead of the usual answer, by method.
        headers: of the newest POST; `seen`: every message, `methods`: every HTTP method.
        session: its session's id; None: it keeps none.
        closes: each connection is for one request only.
        deletes: what the answer to a DELETE waits for.
    """

    def __init__(
        self, host: str = "127.0.0.1", *, port: int = 0, context: ssl.SSLContext | None = None
    ) -> None:
        self.host = host
        self.context = context
        self.status = 200
        self.more: dict[str, str] = {}
        self.answers: dict[str, Answers] = {}
        self.headers: dict[str, str] = {}
        self.seen: list[Any] = []
        self.methods: list[str] = []
        self.session: str | None = "session-1"
        self.closes = False
        self.deletes: asyncio.Event | None = None
        self.get: Answers | None = None
        self.port = port
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        scheme = "http" if self.context is None else "https"
        return f"{scheme}://{self.host}:{self.port}/mcp"

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(
            self._runner, self.host, self.port, reuse_address=True, ssl_context=self.context
        )
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def methods_of(self) -> list[str]:
        """Of every message, answers as an empty text."""
        return [message.get("method", "") for message in self.seen]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        reply = await self._answer(request)
        if self.closes:
            reply.force_close()
        return reply

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.methods.append(request.method)
        if request.method == "GET" and self.get is not None:
            return await self.get(request, None)
        if request.method == "DELETE" and self.deletes is not None:
            await self.deletes.wait()
        if request.method != "POST":
            return web.Response(status=405 if request.method == "GET" else 204)
        self.headers = dict(request.headers)
        message = json.loads(await request.read())
        self.seen.append(message)
        if self.status != 200:
            return web.Response(status=self.status, headers=self.more)
        method = message.get("method", "")
        if method in self.answers:
            return await self.answers[method](request, message)
        return self.answer(message, RESULTS.get(method, {}))

    def answer(self, message: Any, result: Any) -> web.Response:
        if "id" not in message or "method" not in message:
            return web.Response(status=202)
        reply = web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})
        if message["method"] == "initialize" and self.session is not None:
            reply.headers["Mcp-Session-Id"] = self.session
        return reply


async def stream(request: web.Request, *pieces: bytes) -> web.StreamResponse:
    """An event stream of these bytes, each as a write of its own."""
    reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await reply.prepare(request)
    for piece in pieces:
        await reply.write(piece)
    return reply


async def never(request: web.Request) -> web.StreamResponse:
    """No answer for as long as the client stays."""
    del request
    await asyncio.get_running_loop().create_future()
    raise AssertionError("unreachable")


def event(ident: str, message: Any) -> bytes:
    """One message as an event with an id."""
    return f"id: {ident}\ndata: {json.dumps(message)}\n\n".encode()
