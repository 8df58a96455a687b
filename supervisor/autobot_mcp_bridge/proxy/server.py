"""The proxy's listeners: clients, operators, and the command line."""

import asyncio
import ipaddress
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError

from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.proxy.bridge import Bridge
from autobot_mcp_bridge.proxy.endpoint import Endpoint
from autobot_mcp_bridge.proxy.incoming import Refusal
from autobot_mcp_bridge.proxy.operator import control_app, health_word, operator_app
from autobot_mcp_bridge.proxy.replies import not_allowed

# Bounds of aiohttp's own parser; the endpoint's limits lie below them.
MAX_FIELD = 64 * 1024
# A body is bounded per server by caps.body; this only has to lie above every one of them.
MAX_BODY = 1 << 30
# How long open requests may go on at shutdown once the servers have been told to end.
SHUTDOWN = 5.0
BACKLOG = 1024


def _is_our_fault(record: logging.LogRecord) -> bool:
    """A stranger's malformed request is answered with 400, and must not fill the log (D4)."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


logging.getLogger("aiohttp.server").addFilter(_is_our_fault)


@dataclass(frozen=True, slots=True)
class Listening:
    url: str
    operator_url: str


def front(
    bridge: Bridge, settings: HostSettings
) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """`/t/…` and the one word of `/healthz`; everything else is a fast 404 (F6).

    Two paths need no router: aiohttp's costs a tenth of a call (DECISIONS).
    """
    endpoint = Endpoint(bridge, settings)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if path.startswith("/t/"):
            return await endpoint(request)
        if path == "/healthz":
            return health(request)
        return web.Response(status=404, text="not found")

    def health(request: web.BaseRequest) -> web.Response:
        try:
            endpoint.check_origin(request)
        except Refusal as refusal:
            return refusal.reply
        if request.method not in ("GET", "HEAD"):
            return not_allowed("GET, HEAD")
        return web.json_response(health_word(bridge))

    return handle


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    """As aiohttp makes it, but with a limit of ours for the body."""
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY)


@asynccontextmanager
async def listening(bridge: Bridge, settings: HostSettings) -> AsyncIterator[Listening]:
    """Serve until the block ends; then take no more requests and let the open ones end.

    Raises:
        UsageError: the address may not be used without an explicit word, or is taken.
    """
    check_address(settings)
    server = web.Server(
        front(bridge, settings),
        request_factory=_request,
        access_log=None,
        auto_decompress=False,
        handler_cancellation=True,  # a client that goes is noticed at once (E14)
        max_field_size=MAX_FIELD,
        max_line_size=MAX_FIELD,
    )
    main = web.ServerRunner(server, shutdown_timeout=SHUTDOWN)
    operator = web.AppRunner(operator_app(bridge), access_log=None, shutdown_timeout=SHUTDOWN)
    control = web.AppRunner(control_app(bridge), access_log=None, shutdown_timeout=SHUTDOWN)
    runners: tuple[web.BaseRunner, ...] = (main, operator, control)
    path = bridge.places.control_socket
    try:
        for runner in runners:
            await runner.setup()
        url = await _listen(main, settings.listen.address, settings.listen.port)
        operator_url = await _listen(operator, settings.operator.address, settings.operator.port)
        await web.SockSite(control, control_socket(path)).start()
        yield Listening(url, operator_url)
    finally:
        for runner in runners:
            await runner.cleanup()
        path.unlink(missing_ok=True)


def check_address(settings: HostSettings) -> None:
    """No listening beyond loopback without `listen.beyond_loopback` (A5)."""
    for name, address in (
        ("listen", settings.listen.address),
        ("operator", settings.operator.address),
    ):
        if is_loopback(address) or settings.listen.beyond_loopback:
            continue
        raise UsageError(
            f"{name}.address {address}: others than this machine could connect, without TLS; "
            "say listen.beyond_loopback = true in host.toml if that is meant"
        )


def is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


async def _listen(runner: web.BaseRunner, address: str, port: int) -> str:
    site = web.TCPSite(runner, address, port, backlog=BACKLOG)
    try:
        await site.start()
    except OSError as error:
        raise UsageError(f"cannot listen on {address}:{port}: {error.strerror}") from None
    host, port, *_ = runner.addresses[0]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def control_socket(path: Path) -> socket.socket:
    """The socket of the command line, 0600; one left behind by a proxy that died is replaced.

    Raises:
        UsageError: a proxy answers there already.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            path.unlink(missing_ok=True)
        else:
            raise UsageError(f"a proxy is running already: {path} answers")
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(os.fspath(path))
    except OSError as error:
        listener.close()
        raise UsageError(f"cannot listen on {path}: {error.strerror}") from None
    finally:
        os.umask(before)
    listener.setblocking(False)
    return listener
