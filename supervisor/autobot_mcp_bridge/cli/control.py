"""Talking to the running proxy: HTTP over its Unix socket, standard library only."""

import http.client
import json
import socket
from typing import Any
from urllib.parse import quote

from autobot_mcp_bridge.cli.common import running_endpoint
from autobot_mcp_bridge.config.errors import DataError, DeniedError, MissingError, UnavailableError
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.errors import BridgeError

ENV_TOKEN = "MCP_BRIDGE_TOKEN"  # noqa: S105 - the variable's name
STATUS_SECONDS = 5.0
RELOAD_SECONDS = 60.0  # servers whose process must go are stopped by their own protocol first
OPERATE_SECONDS = 120.0  # a start waits for the server's initialize answer
MAX_ANSWER_BYTES = 16 << 20


class NoProxyError(UnavailableError):
    """Nobody answers at the control socket."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def ask(places: Places, method: str, target: str, timeout: float, body: object = None) -> Any:
    """One request to the proxy, with a body of JSON or none; its JSON answer.

    Raises:
        NoProxyError: no proxy runs.
        UnavailableError: it did not answer within `timeout` seconds.
        DeniedError: the socket is another user's.
        MissingError: it knows no such server.
        DataError: it refused; the message is its own.
    """
    connection = _UnixConnection(str(places.control_socket), timeout)
    try:
        sent = json.dumps(body).encode() if body is not None else None
        connection.request(method, target, sent, headers={"Connection": "close"})
        response = connection.getresponse()
        text = response.read(MAX_ANSWER_BYTES)
    except PermissionError as error:
        raise DeniedError(f"{places.control_socket}: {error.strerror}") from error
    except TimeoutError as error:
        raise UnavailableError(f"the proxy did not answer within {timeout:g} seconds") from error
    except (OSError, http.client.HTTPException) as error:
        raise NoProxyError(f"no proxy answers at {places.control_socket}: {error}") from error
    finally:
        connection.close()
    try:
        answer = json.loads(text) if text else {}
    except ValueError:
        answer = {"error": text[:300].decode(errors="replace")}
    if response.status == http.client.NOT_FOUND:
        raise MissingError(_message(answer, response.status))
    if response.status >= http.client.BAD_REQUEST:
        raise DataError(_message(answer, response.status))
    return answer


def _message(answer: object, status: int) -> str:
    if isinstance(answer, dict):
        for key in ("error", "message", "detail"):
            if isinstance(answer.get(key), str):
                return str(answer[key])
        if isinstance(answer.get("problems"), list):
            return "\n".join(map(str, answer["problems"]))
    return f"the proxy answered {status}"


def status(places: Places) -> dict[str, Any] | None:
    """What GET /status says; None where no proxy runs.

    Raises:
        DeniedError: the socket is another user's.
    """
    try:
        found = ask(places, "GET", "/status", STATUS_SECONDS)
    except UnavailableError:
        return None
    return found if isinstance(found, dict) else None


def reload(places: Places) -> Any:
    """Have the files read again; returns when they are in force (raises as `ask` does)."""
    return ask(places, "POST", "/reload", RELOAD_SECONDS)


def tell(places: Places) -> bool:
    """Have a proxy that runs read its configuration and tokens; without this, it soon does.

    Whether that has been done, or nobody needs to be told.
    """
    try:
        ask(places, "POST", "/reload?no-retry", STATUS_SECONDS)
    except NoProxyError:
        return True
    except BridgeError:
        return False
    return True


def operate(places: Places, instance: str, verb: str) -> Any:
    """start, stop or reset one server (raises as `ask` does)."""
    return ask(places, "POST", f"/servers/{quote(instance, safe='')}/{verb}", OPERATE_SECONDS)


def tools(places: Places, instance: str) -> Any:
    """The tools of one server, accepted or not (raises as `ask` does)."""
    return ask(places, "GET", f"/servers/{quote(instance, safe='')}/tools", STATUS_SECONDS)


def accept_tools(places: Places, instance: str, names: list[str], seal: str | None) -> Any:
    """Have tools accepted, without names all that differ (raises as `ask` does)."""
    target = f"/servers/{quote(instance, safe='')}/tools/accept"
    return ask(places, "POST", target, RELOAD_SECONDS, {"tools": names, "seal": seal})


def proxy_url(places: Places) -> str:
    """Where the proxy listens: one in the foreground leaves a file, one of systemd is asked.

    Raises:
        UnavailableError: none runs.
    """
    endpoint = running_endpoint(places)
    if endpoint is None:
        endpoint = status(places)
    if endpoint is None or not isinstance(endpoint.get("url"), str):
        raise UnavailableError(f"no proxy runs ({places.endpoint_file}); `mcp-bridge serve` does")
    url: str = endpoint["url"]
    return url
