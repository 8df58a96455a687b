"""A lean MCP client for both eras. It shows statuses, headers and bytes and hides nothing."""

import asyncio
import base64
import itertools
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import urlsplit

from support.wire import WITHIN, Connection, Dial, Response, Stream, narrow

LATEST = "2025-11-25"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
BOTH = "application/json, text/event-stream"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def dumps(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def same_id(left: object, right: object) -> bool:
    """Equal in value and JSON type: 1 is not "1" (and not true)."""
    return type(left) is type(right) and left == right


def answer_to(response: Response, ident: object) -> dict[str, Any]:
    """The one answer with this id.

    Raises:
        AssertionError: there is none, or more than one.
    """
    found = [
        m
        for m in response.messages
        if isinstance(m, dict) and "method" not in m and same_id(m.get("id", ...), ident)
    ]
    assert len(found) == 1, (
        f"{len(found)} answers to {ident!r}: {response.status} {response.body[:400]!r}"
    )
    return found[0]


def text_of(answer: dict[str, Any]) -> str:
    """The text of a tool's answer.

    Raises:
        AssertionError: it is an error.
    """
    assert "result" in answer, f"no result: {answer}"
    content: str = answer["result"]["content"][0]["text"]
    return content


def error_of(answer: dict[str, Any]) -> dict[str, Any]:
    """The error of an answer.

    Raises:
        AssertionError: it is a result.
    """
    assert "error" in answer, f"no error: {str(answer)[:400]}"
    error: dict[str, Any] = answer["error"]
    return error


def code_of(answer: dict[str, Any]) -> str:
    """The stable word in error.data.code."""
    word: str = error_of(answer)["data"]["code"]
    return word


class Client:
    """What both eras have in common: an endpoint, a token and kept connections."""

    def __init__(self, url: str, token: str | None, *, ids: Any = None) -> None:
        parts = urlsplit(url)
        self.url = url
        self.target = parts.path
        self.host = parts.netloc
        self.token = token
        self.ids = ids if ids is not None else itertools.count(1000)
        self.dial: Dial | None = None
        self.tls: ssl.SSLContext | None = None  # for https
        self.deaf = False  # its new connections take little before it is read
        self._idle: list[Connection] = []
        self._keeps = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.drop()

    async def drop(self) -> None:
        """Close the kept connections, and those in use as soon as they are not."""
        self._keeps = False
        while self._idle:
            await self._idle.pop().close()

    def headers(self, message: Any = None) -> dict[str, str]:
        found = {"Host": self.host, "Accept": BOTH}
        if self.token is not None:
            found["Authorization"] = f"Bearer {self.token}"
        if message is not None:
            found["Content-Type"] = "application/json"
        return found

    def prepare(self, message: Any) -> Any:
        return message

    async def send(
        self,
        message: Any = None,
        *,
        method: str = "POST",
        headers: dict[str, str | None] | None = None,
        body: bytes | None = None,
        target: str | None = None,
        within: float = WITHIN,
    ) -> Response:
        """One exchange. A header given as None is left out; `body` replaces the message."""
        async with self._connection() as connection, asyncio.timeout(within):
            return await connection.request(
                method, target or self.target, *self._parts(message, headers, body)
            )

    async def open_stream(
        self,
        message: Any = None,
        *,
        method: str = "POST",
        headers: dict[str, str | None] | None = None,
    ) -> Stream:
        """The same on a connection of its own, body unread; the caller closes the stream."""
        connection = await self._connect()
        try:
            parts = self._parts(message, headers, None)
            return await connection.stream(method, self.target, *parts)
        except BaseException:
            connection.reset()
            raise

    def _parts(
        self, message: Any, headers: dict[str, str | None] | None, body: bytes | None
    ) -> tuple[dict[str, str], bytes | None]:
        sent: dict[str, str | None] = {**self.headers(message if body is None else body)}
        sent.update(headers or {})
        if body is None and message is not None:
            body = dumps(self.prepare(message))
        return {k: v for k, v in sent.items() if v is not None}, body

    async def take_connection(self) -> Connection:
        """A kept connection, or a new one."""
        return self._idle.pop() if self._idle else await self._connect()

    async def _connect(self) -> Connection:
        if self.deaf:
            return await narrow(self.url, self.tls)
        return await Connection.open(self.url, self.dial, tls=self.tls)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        connection = await self.take_connection()
        try:
            yield connection
        finally:
            if connection.reusable and self._keeps:
                self._idle.append(connection)
            else:
                await connection.close()

    def request_of(
        self, method: str, params: dict[str, Any] | None = None, ident: Any = ...
    ) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": next(self.ids) if ident is ... else ident}
        return {**message, "method": method, **({} if params is None else {"params": params})}

    async def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        ident: Any = ...,
        within: float = WITHIN,
    ) -> dict[str, Any]:
        """The answer, a result or an error, found by its id."""
        message = self.request_of(method, params, ident)
        return answer_to(await self.send(message, within=within), message["id"])

    def call_of(
        self, tool: str, arguments: dict[str, Any], ident: Any = ..., progress: Any = None
    ) -> dict[str, Any]:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if progress is not None:
            params["_meta"] = {"progressToken": progress}
        return self.request_of("tools/call", params, ident)

    async def call(
        self, tool: str, arguments: dict[str, Any] | None = None, *, within: float = WITHIN
    ) -> dict[str, Any]:
        message = self.call_of(tool, arguments or {})
        return answer_to(await self.send(message, within=within), message["id"])

    async def text(self, tool: str, /, *, within: float = WITHIN, **arguments: Any) -> str:
        return text_of(await self.call(tool, arguments, within=within))

    async def tools(self) -> list[str]:
        """The names of all tools, over all pages."""
        names: list[str] = []
        params: dict[str, Any] = {}
        while True:
            result = (await self.request("tools/list", params))["result"]
            names += [tool["name"] for tool in result["tools"]]
            if not result.get("nextCursor"):
                return names
            params = {"cursor": result["nextCursor"]}


def _header_value(text: str) -> str:
    """As it is, or in the base64 form where HTTP would change it (SEP-2243)."""
    if text == text.strip() and all(" " <= c <= "~" for c in text) and text[:2] != "=?":
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


class Session(Client):
    """The handshake era: initialize once, then name the session."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        version: str = LATEST,
        ids: Any = None,
        opened: bool = True,
    ) -> None:
        super().__init__(url, token, ids=ids)
        self.opened = opened
        self.offered = version
        self.capabilities: dict[str, Any] = {"roots": {}, "sampling": {}, "elicitation": {}}
        self.version: str | None = None
        self.session: str | None = None
        self.initialized: dict[str, Any] = {}

    async def __aenter__(self) -> Self:
        if self.opened:
            try:
                await self.initialize()
            except BaseException:
                await self.drop()
                raise
        return self

    def headers(self, message: Any = None) -> dict[str, str]:
        found = super().headers(message)
        if self.session is not None:
            found["Mcp-Session-Id"] = self.session
        if self.version is not None:
            found["MCP-Protocol-Version"] = self.version
        return found

    def initialize_of(self, ident: Any = ...) -> dict[str, Any]:
        return self.request_of(
            "initialize",
            {
                "protocolVersion": self.offered,
                "capabilities": self.capabilities,
                "clientInfo": {"name": "tests", "version": "1"},
            },
            ident,
        )

    async def initialize(self, *, within: float = WITHIN) -> Response:
        """initialize and notifications/initialized.

        Raises:
            AssertionError: the server refused.
        """
        response = await self.send(self.initialize_of("initialize"), within=within)
        answer = answer_to(response, "initialize")
        assert "result" in answer, f"initialize: {response.status} {answer}"
        self.session = response.header("Mcp-Session-Id")
        self.version = answer["result"]["protocolVersion"]
        self.initialized = answer["result"]
        done = await self.notify("notifications/initialized")
        assert (done.status, done.body) == (202, b"")
        return response

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> Response:
        extra = {} if params is None else {"params": params}
        return await self.send({"jsonrpc": "2.0", "method": method, **extra})

    async def listen(self, after: str | None = None) -> Stream:
        """The session's GET stream, or the stream of the event with this id, after it."""
        headers: dict[str, str | None] = {"Accept": "text/event-stream", "Last-Event-ID": after}
        return await self.open_stream(method="GET", headers=headers)

    async def delete(self) -> Response:
        return await self.send(method="DELETE")


class Modern(Client):
    """2026-07-28: each request stands alone."""

    version = MODERN

    def headers(self, message: Any = None) -> dict[str, str]:
        found = super().headers(message)
        found["MCP-Protocol-Version"] = self.version
        if isinstance(message, dict) and "method" in message:
            found["Mcp-Method"] = message["method"]
            named = _NAMED.get(message["method"])
            if named and named in message.get("params", {}):
                found["Mcp-Name"] = _header_value(str(message["params"][named]))
        return found

    def prepare(self, message: Any) -> Any:
        """Add the envelope that every request carries."""
        if not isinstance(message, dict) or "method" not in message:
            return message
        params = dict(message.get("params") or {})
        params["_meta"] = {
            META + "protocolVersion": self.version,
            META + "clientCapabilities": {},
            META + "clientInfo": {"name": "tests", "version": "1"},
            **params.get("_meta", {}),
        }
        return {**message, "params": params}
