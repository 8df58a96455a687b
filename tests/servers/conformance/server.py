"""The server's one conversation: which era a request belongs to, what is open, what is written."""

import asyncio
import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

from call import META, Call, InputRequiredError, RpcError
from methods import INFO, check_envelope, handshake, modern, unsupported

ERAS = ("both", "pinned", "legacy", "modern")
DISCOVER = ("unknown", "invalid", "silent", "exits", "hangs")
CACHED = {
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
}
CACHED_FOR = 60_000  # milliseconds that the answer to server/discover may be kept


class Server:
    def __init__(self, era: str, discover: str, scope: str, log: str | None = None) -> None:
        self.era, self.discover, self.scope, self.log = era, discover, scope, log
        self.pinned: bool | None = None  # whether the process has turned out modern
        self.mute = False
        self.version: str | None = None  # of the handshake
        self.client_offers: dict[str, Any] = {}
        self.log_level = "debug"
        self.listening: dict[Any, dict[str, Any]] = {}
        self.sleeps: dict[str, str] = {}
        self.heard: list[str] = []
        self.subscribed: set[str] = set()
        self.last_asked = ""
        self.withdrawn = 0
        self._running: dict[Any, asyncio.Task[None]] = {}
        self._asked: dict[str, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)

    # Writing

    def write_line(self, line: bytes) -> None:
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()

    def write(self, message: dict[str, Any]) -> None:
        whole = {"jsonrpc": "2.0", **message}
        self.write_line(json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode())

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.write({"method": method, **({} if params is None else {"params": params})})

    def changed(self, kind: str) -> None:
        """Announce a changed list to the handshake's client and to who listens."""
        method = f"notifications/{kind}/list_changed"
        if self.version:
            self.notify(method)
        for ident, wanted in self.listening.items():
            if wanted.get(f"{kind}ListChanged"):
                self.notify(method, {"_meta": {META + "subscriptionId": ident}})

    async def ask_all(self, requests: dict[str, Any]) -> dict[str, Any]:
        """Send these requests to the client at once and wait for all answers.

        Raises:
            RpcError: one of them is an error.
        """
        answers = await asyncio.gather(*(self._ask(request) for request in requests.values()))
        return dict(zip(requests, answers, strict=True))

    async def _ask(self, request: dict[str, Any]) -> Any:
        ident = self.last_asked = f"asked-{next(self._numbers)}"
        self._asked[ident] = asyncio.get_running_loop().create_future()
        self.write({"id": ident, **request})
        try:
            return await self._asked[ident]
        finally:
            del self._asked[ident]

    def updated(self, uri: str) -> None:
        """Announce a changed resource to whoever subscribed to it."""
        method = "notifications/resources/updated"
        if uri in self.subscribed:
            self.notify(method, {"uri": uri})
        for ident, wanted in self.listening.items():
            if uri in wanted.get("resourceSubscriptions", ()):
                self.notify(method, {"uri": uri, "_meta": {META + "subscriptionId": ident}})

    # Reading

    def note(self, message: dict[str, Any]) -> None:
        """Remember what this process was told, and leave it in a file for who starts it."""
        method = message.get("method", "(an answer)")
        self.heard.append(method)
        if self.log:
            with Path(self.log).open("a", encoding="utf-8") as file:
                file.write(f"{os.getpid()} {method}\n")

    def receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            self.write({"id": None, "error": {"code": -32700, "message": "Parse error"}})
            return
        if isinstance(message, dict):
            self.note(message)
        if self.mute:
            return
        if not isinstance(message, dict):
            self.write({"id": None, "error": {"code": -32600, "message": "one message a line"}})
            return
        ident, params = message.get("id"), message.get("params") or {}
        if "method" not in message:
            self._answered(message)
        elif ident is not None:
            if not self._fails_discover(message):
                self._running[ident] = asyncio.create_task(self._serve(message))
        elif message["method"] == "notifications/cancelled":
            self._cancel(params.get("requestId"))

    def _cancel(self, ident: Any) -> None:
        if task := self._running.get(ident):
            task.cancel()

    def _answered(self, message: dict[str, Any]) -> None:
        asked = self._asked.get(message.get("id", ""))
        if asked is None or asked.done():
            return
        if "error" in message:
            error = message["error"]
            asked.set_exception(RpcError(error.get("code", -32603), error.get("message", "")))
        else:
            asked.set_result(message.get("result") or {})

    def _fails_discover(self, message: dict[str, Any]) -> bool:
        """Tell whether the probe of a handshake server came to its own bad end."""
        if self.era != "legacy" or self.version or message["method"] != "server/discover":
            return False
        if self.discover == "exits":
            os._exit(1)
        self.mute = self.discover == "hangs"
        return self.discover in ("silent", "hangs")

    async def _serve(self, message: dict[str, Any]) -> None:
        ident = message["id"]
        try:
            self.write({"id": ident, "result": await self._result(message)})
        except RpcError as error:
            self.write({"id": ident, "error": error.error})
        except Exception as fault:
            told = {"code": -32603, "message": f"{type(fault).__name__}: {fault}"}
            self.write({"id": ident, "error": told})
            raise
        finally:
            del self._running[ident]

    async def _result(self, message: dict[str, Any]) -> Any:
        method, params = message["method"], message.get("params") or {}
        if not self._is_modern(method, params):
            if method not in ("initialize", "ping") and self.version is None:
                raise self._too_early(method)
            return await handshake(Call(self, message["id"], message, modern=False))
        if method == "initialize":
            raise unsupported(params.get("protocolVersion"))
        check_envelope(params)
        try:
            result = await modern(Call(self, message["id"], message, modern=True))
        except InputRequiredError as required:
            result = required.result
        result.setdefault("resultType", "complete")
        result.setdefault("_meta", {})[META + "serverInfo"] = INFO
        if method in CACHED:
            kept = CACHED_FOR if method == "server/discover" else 0
            result.update(ttlMs=kept, cacheScope=self.scope)
        return result

    def _too_early(self, method: str) -> RpcError:
        if method != "server/discover":
            return RpcError(-32600, "not initialized")
        if self.discover == "invalid":
            return RpcError(-32602, "Invalid request parameters")
        return RpcError(-32601, "Method not found: server/discover")

    def _is_modern(self, method: str, params: dict[str, Any]) -> bool:
        """Which era a request is served in.

        Raises:
            RpcError: the process is pinned to the other.
        """
        marked = any(str(key).startswith(META) for key in params.get("_meta") or {})
        if self.era == "legacy":
            return False
        if self.era == "modern":
            return True
        first = method != "initialize" and (
            marked or method == "server/discover" or self.version is None
        )
        if self.era == "both":
            return first
        if self.pinned is None:
            self.pinned = first
        elif self.pinned and method == "initialize":
            raise unsupported(params.get("protocolVersion"))
        elif not self.pinned and marked:
            raise RpcError(-32600, "this process serves the handshake era")
        return self.pinned
