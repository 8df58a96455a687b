"""HTTP to one upstream: each request once, bounded, its failures in words of our own."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp

from autobot_mcp_bridge import __version__
from autobot_mcp_bridge.upstream.endings import (
    CONFIG,
    NO_HOST,
    PROTOCOL,
    UNAVAILABLE,
    FailedError,
)
from autobot_mcp_bridge.upstream.reach import RefusedError, Resolver
from autobot_mcp_bridge.upstream.settings import Settings

CONNECT_WITHIN = 10.0  # seconds for name, TCP and TLS
# Idle connections are closed before the upstream does: node and uvicorn do so after 5 s, and a call
# that meets its connection's end may or may not have arrived.
KEEP_IDLE = 4.0
# Seconds: an upstream that takes nothing, or is gone without a word, ends its connections (tcp(7)).
UNHEARD = 30
_PROBE_AFTER, _PROBE_EVERY = 15, 5
JSON, STREAM = "application/json", "text/event-stream"
_ACCEPT = f"{JSON}, {STREAM}"


@dataclass(slots=True)
class Sending:
    """One message on its way.

    Attributes:
        begun: set once its head has been written.
        written: the same of its latest try.
    """

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    written: bool = False


class Client:
    """`async with Client(settings) as client`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._url = settings.url
        self._https = urlsplit(settings.url).scheme == "https"

    async def __aenter__(self) -> Self:
        """Make the session.

        Raises:
            FailedError: the URL's own address must not be connected to.
        """
        host = urlsplit(self._url).hostname or ""
        if _is_literal(host) and self._settings.proxy is None:
            try:  # of a literal aiohttp asks no resolver
                self._settings.reach.check(host, [host])
            except RefusedError as error:
                raise FailedError(str(error), CONFIG, sent=False) from None
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(_began)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=_Unchecked() if self._settings.proxy else Resolver(self._settings.reach),
                use_dns_cache=False,
                ssl=ssl.create_default_context() if self._https else False,
                limit=0,  # the relay counts
                keepalive_timeout=KEEP_IDLE,
                socket_factory=_socket,
            ),
            timeout=aiohttp.ClientTimeout(
                total=None, connect=CONNECT_WITHIN, sock_connect=CONNECT_WITHIN
            ),
            headers={**self._settings.headers, "User-Agent": f"mcp-bridge/{__version__}"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trace_configs=[tracing],
            read_bufsize=1 << 17,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    @asynccontextmanager
    async def request(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        sending: Sending | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request; its answer, whatever its status, which may go on for as long as it likes.

        Raises:
            FailedError: there is none.
        """
        given = {"Accept": _ACCEPT, "Accept-Encoding": "identity", **headers}
        if body is not None:
            given["Content-Type"] = JSON
        try:
            async with self._session.request(
                method,
                self._url,
                data=body,
                headers=given,
                allow_redirects=False,
                proxy=self._settings.proxy,
                trace_request_ctx=sending,
            ) as response:
                yield response
        except (aiohttp.ClientError, OSError) as error:
            raise self._failed(error, sending) from None

    def _failed(self, error: Exception, sending: Sending | None) -> FailedError:
        place = self._settings.place
        match error:
            case aiohttp.ClientConnectorDNSError(os_error=RefusedError() as refused):
                return FailedError(f"{place}: {refused}", CONFIG, sent=False)
            case aiohttp.ClientConnectorDNSError(os_error=cause):
                why = cause.strerror or str(cause)
                text = f"{place}: the name cannot be resolved: {why}"
                return FailedError(text, NO_HOST, sent=False)
            case aiohttp.ClientConnectorCertificateError(certificate_error=cause):
                why = getattr(cause, "verify_message", "") or str(cause)
                text = f"{place}: its certificate is not accepted: {why}"
                return FailedError(text, PROTOCOL, sent=False)
            case aiohttp.ClientSSLError():
                return FailedError(f"{place}: TLS failed: {error}", PROTOCOL, sent=False)
            case aiohttp.ClientHttpProxyError(status=status):
                text = f"{place}: the egress proxy refuses it ({status}); network.allow lists hosts"
                return FailedError(text, CONFIG, sent=False)
            case aiohttp.ClientConnectorError(os_error=cause):
                why = os.strerror(cause.errno).lower() if cause.errno else type(cause).__name__
                text = f"{place}: cannot be connected to: {why}"
                return FailedError(text, UNAVAILABLE, sent=False, passing=True)
            case aiohttp.ConnectionTimeoutError():
                text = f"{place}: no connection within {CONNECT_WITHIN:.0f} s"
                return FailedError(text, UNAVAILABLE, sent=False)
            case aiohttp.InvalidURL():
                return FailedError(f"{place}: the URL is not usable", CONFIG, sent=False)
        sent = sending is None or sending.written
        return FailedError(f"{place}: the connection broke", UNAVAILABLE, sent=sent, passing=True)


class _Unchecked(aiohttp.abc.AbstractResolver):
    """For who connects to a proxy by its address only, and leaves names to it."""

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> Any:
        del port, family
        raise RefusedError(0, f"{host} is for the proxy to resolve")

    async def close(self) -> None:
        """Nothing is kept."""


async def _began(_session: object, context: SimpleNamespace, _params: object) -> None:
    if isinstance(sending := context.trace_request_ctx, Sending):
        sending.written = True
        sending.begun.set()


def _socket(info: Any) -> socket.socket:
    made = socket.socket(info[0], info[1], info[2])
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_AFTER)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_EVERY)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNHEARD * 1000)
    return made


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
