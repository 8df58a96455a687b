"""One MCP request in the 2026-07-28 form: one POST, no handshake; standard library only."""

import hashlib
import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import SplitResult, urlsplit

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.config.errors import DeniedError, UnavailableError
from autobot_mcp_bridge.model import versions
from autobot_mcp_bridge.model.mirrored import header_value

MAX_ANSWER_BYTES = 64 << 20
_CHUNK = 65536
_ID = 1


def call_tool(
    url: str,
    token: str | None,
    tool: str,
    arguments: dict[str, Any],
    timeout: float,
    is_ours: Callable[[str], bool] | None = None,
) -> dict[str, Any]:
    """Call a tool; the JSON-RPC response, result or error.

    Args:
        url: the server's endpoint.
        token: for the Authorization header; None: none is sent.
        tool: its name.
        arguments: for the tool.
        timeout: seconds for all of it.
        is_ours: of https to this host's own proxy, whether the sha256 of the certificate that was
            shown, in hex, is one of its own: no certificate is for 127.0.0.1. None: as a browser
            judges it.

    Raises:
        UnavailableError: nothing answers there in time, or not with JSON-RPC.
        DeniedError: the token is not let in.
    """
    deadline = time.monotonic() + timeout
    parts = urlsplit(url)
    connection = _connection(parts, timeout, pinned=is_ours is not None)
    try:
        connection.connect()
        sock = connection.sock
        if isinstance(sock, ssl.SSLSocket) and is_ours is not None:
            shown = hashlib.sha256(sock.getpeercert(binary_form=True) or b"").hexdigest()
            if not is_ours(shown):
                raise UnavailableError(f"{url} shows a certificate that is not the proxy's")
        connection.request("POST", parts.path, _body(tool, arguments), _headers(tool, token))
        sock.settimeout(_left(deadline))
        response = connection.getresponse()
        return _answer(response, sock, deadline)
    except TimeoutError as error:
        raise UnavailableError(f"no answer within {timeout:g} seconds") from error
    except (OSError, http.client.HTTPException) as error:
        raise UnavailableError(f"{url} does not answer: {error or type(error).__name__}") from error
    finally:
        connection.close()


def _connection(parts: SplitResult, timeout: float, *, pinned: bool) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme != "https":
        return http.client.HTTPConnection(host, parts.port, timeout=timeout)
    context = ssl.create_default_context()
    if pinned:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=context)


def _body(tool: str, arguments: dict[str, Any]) -> bytes:
    meta = {
        versions.META_VERSION: versions.MODERN,
        versions.META_CAPABILITIES: {},
        versions.META_CLIENT: {"name": "mcp-bridge", "version": __version__},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": _ID, "method": "tools/call", "params": params}
    return json.dumps(message).encode()


def _headers(tool: str, token: str | None) -> dict[str, str]:
    headers = {
        "Accept": "application/json, text/event-stream",
        "Connection": "close",
        "Content-Type": "application/json",
        # The proxy takes it on whatever address it listens (policy/origin.py).
        "Host": "localhost",
        "MCP-Protocol-Version": versions.MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": header_value(tool),
    }
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return headers


def _answer(
    response: http.client.HTTPResponse, sock: socket.socket, deadline: float
) -> dict[str, Any]:
    if response.status == http.client.UNAUTHORIZED:
        raise DeniedError("the token is missing or not let in (401)")
    kind = response.headers.get_content_type()
    found = None
    if kind == "text/event-stream":
        for data in _events(response, sock, deadline):
            message = _parsed(data)
            if message is not None and message.get("id") == _ID and "method" not in message:
                found = message
                break
    elif kind == "application/json":
        found = _parsed(b"".join(_chunks(response, sock, deadline)))
    if found is None or not {"result", "error"} & found.keys():
        raise UnavailableError(f"the answer is not JSON-RPC ({response.status}, {kind})")
    return found


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _events(
    response: http.client.HTTPResponse, sock: socket.socket, deadline: float
) -> Iterator[bytes]:
    """The data of each server-sent event."""
    waiting = b""
    data: list[bytes] = []
    for chunk in _chunks(response, sock, deadline):
        *lines, waiting = (waiting + chunk).split(b"\n")
        for line in (raw.removesuffix(b"\r") for raw in lines):
            if line.startswith(b"data:"):
                data.append(line.removeprefix(b"data:").removeprefix(b" "))
            elif not line and data:
                yield b"\n".join(data)
                data = []


def _chunks(
    response: http.client.HTTPResponse, sock: socket.socket, deadline: float
) -> Iterator[bytes]:
    size = 0
    # Python 3.13 closes the response, and with it the socket, once its length has been read.
    while not response.isclosed():
        sock.settimeout(_left(deadline))
        chunk = response.read1(_CHUNK)
        if not chunk:
            return
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            raise UnavailableError(f"the answer is larger than {MAX_ANSWER_BYTES >> 20} MiB")
        yield chunk


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
