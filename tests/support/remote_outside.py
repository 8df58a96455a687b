"""A remote MCP server outside of a container of the lab, of the handshake era, without a session."""

import json
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from support.outside import Outside

_WITHIN = 30.0
_HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "outside", "version": "1"},
}


@dataclass(frozen=True, slots=True)
class Request:
    """One that has come: its headers, names in lower case, and its message."""

    headers: dict[str, str]
    message: Any


class RemoteOutside(Outside):
    """Outside, whose TLS server speaks MCP; one request a connection."""

    resolver = "127.0.0.53"  # the one of loopback that units with a network may ask
    requests: list[Request]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.requests = []

    def _greet(self, client: socket.socket) -> None:
        client.settimeout(_WITHIN)
        with (
            suppress(OSError, ValueError),
            self._context.wrap_socket(client, server_side=True) as one,
        ):
            file = one.makefile("rb")
            verb = file.readline().split()[0]
            headers = {}
            while line := file.readline().strip():
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.strip().lower()] = value.strip()
            if verb != b"POST":
                one.sendall(_reply(405))
                return
            message = json.loads(file.read(int(headers["content-length"])))
            self.requests.append(Request(headers, message))
            one.sendall(self._answer_to(message, one.getsockname()[0]))

    def _answer_to(self, message: Any, address: str) -> bytes:
        if "id" not in message:
            return _reply(202)
        results: dict[str, Any] = {
            "initialize": _HELLO,
            "tools/list": {"tools": [{"name": "where", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": f"reached {address}"}]},
        }
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] not in results:
            error = {"code": -32601, "message": "unknown method"}
            return _reply(404, {**answer, "error": error})
        return _reply(200, {**answer, "result": results[message["method"]]})


def _reply(status: int, message: Any = None) -> bytes:
    body = b"" if message is None else json.dumps(message).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
