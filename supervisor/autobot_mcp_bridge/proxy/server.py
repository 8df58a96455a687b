"""The proxy's listeners: clients, operators, and the command line."""

import ipaddress
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from autobot_mcp_bridge.config.errors import UnavailableError
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.host import HostSettings, Listen, Operator
from autobot_mcp_bridge.proxy import connections
from autobot_mcp_bridge.proxy.bridge import Bridge
from autobot_mcp_bridge.proxy.endpoint import Endpoint
from autobot_mcp_bridge.proxy.incoming import Refusal
from autobot_mcp_bridge.proxy.operator import control_app, health_word, operator_app
from autobot_mcp_bridge.proxy.replies import not_allowed
from autobot_mcp_bridge.proxy.v1.routes import PREFIX as V1
from autobot_mcp_bridge.proxy.wellknown import PREFIX as METADATA

# How long open requests may go on at shutdown once the servers have been told to end.
SHUTDOWN = 5.0
BACKLOG = 1024
# A restart: connections that are in use get the first to hear of it, open calls the second, which
# together with SHUTDOWN lie below TimeoutStopSec= of mcp-bridge-proxy.service.
NOTICE = 1.5
PATIENCE = 10.0


def _is_our_fault(record: logging.LogRecord) -> bool:
    """A stranger's malformed request is answered with 400, and must not fill the log (D4)."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


logging.getLogger("aiohttp.server").addFilter(_is_our_fault)


@dataclass(frozen=True, slots=True)
class Listening:
    url: str
    operator_url: str
    leave: Callable[[], Awaitable[None]]  # take no more, and let what is open end; bounded


def front(bridge: Bridge, settings: HostSettings) -> connections.Handler:
    """`/t/…`, its metadata, `/v1/…` and the one word of `/healthz`; all else is a fast 404 (F6).

    So few paths need no router: aiohttp's costs a tenth of a call (DECISIONS).
    """
    endpoint = Endpoint(bridge, settings)
    has_metadata = bridge.access is not None

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if path.startswith(("/t/", V1)) or (has_metadata and path.startswith(METADATA)):
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


@asynccontextmanager
async def listening(
    bridge: Bridge, settings: HostSettings, given: Mapping[str, socket.socket] | None = None
) -> AsyncIterator[Listening]:
    """Serve until the block ends; then take no more requests and let the open ones end.

    Args:
        bridge: what is served.
        settings: where, and within which bounds.
        given: listening sockets from systemd; whatever is missing is made here.

    Raises:
        UsageError: the address may not be used without TLS or an explicit word.
        UnavailableError: it is taken.
    """
    given = given or {}
    check_address(settings, given)
    server = connections.Server(front(bridge, settings), settings.limits, bridge.tls)
    main = web.ServerRunner(server, shutdown_timeout=SHUTDOWN)
    operator = web.AppRunner(operator_app(bridge), access_log=None, shutdown_timeout=SHUTDOWN)
    control = web.AppRunner(control_app(bridge), access_log=None, shutdown_timeout=SHUTDOWN)
    async with AsyncExitStack() as made:
        # Ended in reverse: the clients' first, so that the others tell of it as long as it takes.
        runners: tuple[web.BaseRunner, ...] = (control, operator, main)
        for runner in runners:
            await runner.setup()
            made.push_async_callback(runner.cleanup)
        operator_url = await _listen(operator, settings.operator, given.get("operator"))
        listener = given.get("control")
        if listener is None:
            path = bridge.places.control_socket
            listener = control_socket(path)
            # Only ours: where another proxy runs, we have not come so far.
            made.callback(path.unlink, missing_ok=True)
        await web.SockSite(control, listener).start()
        if bridge.tls is not None:
            await made.enter_async_context(bridge.tls.followed())
        url = await _listen(main, settings.listen, given.get("http"))
        if bridge.tls is not None:
            url = url.replace("http:", "https:", 1)
        bridge.url = connectable(url)

        async def leave() -> None:
            # Who connects now waits in the socket, for the next proxy where it is systemd's.
            for site in list(main.sites):
                await site.stop()
            bridge.end_streams()
            await server.leave(NOTICE, PATIENCE)

        yield Listening(url, operator_url, leave)


def check_address(settings: HostSettings, given: Mapping[str, socket.socket]) -> None:
    """No listening beyond loopback without TLS or `listen.beyond_loopback` (A5)."""
    meant = settings.listen.beyond_loopback
    allowed = {"http": meant or settings.tls.certificate is not None, "operator": meant}
    for name, listener in given.items():
        host = listener.getsockname()[0] if listener.family != socket.AF_UNIX else "localhost"
        if not is_loopback(host) and not allowed.get(name, meant):
            raise UsageError(
                f"systemd's socket {name} listens on {host}; say listen.beyond_loopback = true in "
                "host.toml if that is meant"
            )
    for name, table, address in (
        ("http", "listen", settings.listen.address),
        ("operator", "operator", settings.operator.address),
    ):
        if is_loopback(address) or allowed[name]:
            continue
        raise UsageError(
            f"{table}.address {address}: others than this machine could connect, without TLS; "
            "say listen.beyond_loopback = true in host.toml if that is meant, or give it tls"
        )


def is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def connectable(url: str) -> str:
    """A URL by which this host reaches the listener: nobody is served as `0.0.0.0`."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


async def _listen(
    runner: web.BaseRunner, where: Listen | Operator, given: socket.socket | None
) -> str:
    site: web.BaseSite
    if given is not None:
        site = web.SockSite(runner, given, backlog=BACKLOG)
    else:
        site = web.TCPSite(runner, where.address, where.port, backlog=BACKLOG)
    try:
        await site.start()
    except OSError as error:
        text = f"cannot listen on {where.address}:{where.port}: {error.strerror}"
        raise UnavailableError(text) from None
    host, port, *_ = runner.addresses[0]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def control_socket(path: Path) -> socket.socket:
    """The socket of the command line, 0600; one left behind by a proxy that died is replaced.

    Raises:
        UnavailableError: a proxy answers there already, or nobody can listen there.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            path.unlink(missing_ok=True)
        else:
            raise UnavailableError(f"a proxy is running already: {path} answers")
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(os.fspath(path))
    except OSError as error:
        listener.close()
        raise UnavailableError(f"cannot listen on {path}: {error.strerror}") from None
    finally:
        os.umask(before)
    listener.setblocking(False)
    return listener
