"""One request that the server works on, the same for a tool in either era."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

META = "io.modelcontextprotocol/"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
STATE_KEY = b"fixed: each process of this server accepts the states that another has made"
ASK_AT_MOST = 2  # times that a question is put in the handshake era, until its answer will do
STRING = {"type": "string"}


class RpcError(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        more = {} if data is None else {"data": data}
        self.error = {"code": code, "message": message, **more}


class InputRequiredError(Exception):
    """A modern call that goes on when its client has answered these (the MRTR pattern)."""

    def __init__(self, requests: dict[str, Any], state: Any) -> None:
        super().__init__("input required")
        self.result: dict[str, Any] = {"resultType": "input_required"}
        if requests:
            self.result["inputRequests"] = requests
        if state is not None:
            self.result["requestState"] = seal(state)


def _digest(raw: str) -> str:
    return hmac.new(STATE_KEY, raw.encode(), hashlib.sha256).hexdigest()


def seal(value: Any) -> str:
    raw = base64.urlsafe_b64encode(json.dumps(value).encode()).decode()
    return f"{raw}.{_digest(raw)}"


def unseal(state: Any) -> Any:
    raw, _, digest = str(state).rpartition(".")
    if not hmac.compare_digest(digest.encode(), _digest(raw).encode()):
        raise RpcError(-32602, "requestState failed verification")
    return json.loads(base64.urlsafe_b64decode(raw))


class Call:
    def __init__(self, server: Any, ident: Any, message: dict[str, Any], *, modern: bool) -> None:
        self.server, self.ident, self.modern = server, ident, modern
        self.method = message["method"]
        self.params = message.get("params") or {}
        self.meta = self.params.get("_meta") or {}
        declared = self.meta.get(META + "clientCapabilities") if modern else server.client_offers
        self.client_offers: dict[str, Any] = declared if isinstance(declared, dict) else {}
        self.token = self.meta.get("progressToken")

    def progress(self, done: int, total: int | None = None, message: str | None = None) -> None:
        if self.token is None:
            return
        params = {"progressToken": self.token, "progress": done, "total": total, "message": message}
        known = {key: value for key, value in params.items() if value is not None}
        self.server.notify("notifications/progress", known)

    def log(self, data: str, level: str = "info") -> None:
        floor = self.meta.get(META + "logLevel") if self.modern else self.server.log_level
        if floor is not None and LEVELS.index(level) >= LEVELS.index(floor):
            params = {"level": level, "logger": "conformance", "data": data}
            self.server.notify("notifications/message", params)

    @property
    def state(self) -> Any:
        """What an earlier round of this call has left with its client."""
        return unseal(self.params["requestState"]) if "requestState" in self.params else None

    async def ask(
        self,
        requests: dict[str, Any],
        state: Any = None,
        valid: Callable[[dict[str, Any]], bool] = bool,
    ) -> dict[str, Any]:
        """The client's answers by key: its next POST brings them, or its answers to requests.

        Raises:
            InputRequiredError: a modern client has still to answer.
            RpcError: the client refused.
        """
        if self.modern:
            answers = self.params.get("inputResponses") or {}
            if not set(requests) <= set(answers) or not valid(answers):
                raise InputRequiredError(requests, state)
            return dict(answers)
        answers = {}
        for _ in range(ASK_AT_MOST):
            answers = await self.server.ask_all(requests)
            if valid(answers):
                break
        return answers


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


def schema(properties: dict[str, Any] | None = None, required: tuple[str, ...] = ()) -> Any:
    more = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties or {}, **more}


def elicit(message: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    asked = schema(properties, required)
    params = {"mode": "form", "message": message, "requestedSchema": asked}
    return {"method": "elicitation/create", "params": params}


def sample(prompt: str, tokens: int = 100) -> dict[str, Any]:
    message = {"role": "user", "content": {"type": "text", "text": prompt}}
    return {
        "method": "sampling/createMessage",
        "params": {"messages": [message], "maxTokens": tokens},
    }


ROOTS: dict[str, Any] = {"method": "roots/list", "params": {}}


def content(answer: Any) -> dict[str, Any]:
    """What a client filled in, or said; nothing where it declined."""
    found = answer.get("content") if isinstance(answer, dict) else None
    return found if isinstance(found, dict) else {}


TOOLS: dict[str, tuple[dict[str, Any], Callable[..., Any]]] = {}


def tool(
    name: str,
    description: str,
    properties: dict[str, Any] | None = None,
    required: tuple[str, ...] = (),
    whole: dict[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Offer a coroutine function of the call and its arguments as a tool."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        described = {
            "name": name,
            "description": description,
            "inputSchema": whole or schema(properties, required),
        }
        TOOLS[name] = (described, function)
        return function

    return register
