"""The one handler of every MCP endpoint: the order of ARCHITECTURE, a step a line."""

import logging
import time

from aiohttp import web

from autobot_mcp_bridge.model.errors import INTERNAL_ERROR, INVALID_REQUEST
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.server import Caps
from autobot_mcp_bridge.model.versions import MODERN, Era
from autobot_mcp_bridge.policy.cors import Cors
from autobot_mcp_bridge.policy.forwarded import HEADER, Forwarded
from autobot_mcp_bridge.policy.origin import OriginRule, hosts_of
from autobot_mcp_bridge.policy.principals import Principal
from autobot_mcp_bridge.proxy import handshake, modern, recording
from autobot_mcp_bridge.proxy.authenticate import Authenticator, Mismatch
from autobot_mcp_bridge.proxy.bridge import Bridge
from autobot_mcp_bridge.proxy.handshake import VERSION_HEADER
from autobot_mcp_bridge.proxy.incoming import (
    EVENT_STREAM,
    Refusal,
    check_headers,
    check_media,
    expect_continue,
    parse_body,
    read_body,
    read_message,
    single,
)
from autobot_mcp_bridge.proxy.peers import CLIENT
from autobot_mcp_bridge.proxy.refusals import Reason, Refused
from autobot_mcp_bridge.proxy.replies import (
    call_error_body,
    error_reply,
    json_reply,
    not_allowed,
)
from autobot_mcp_bridge.proxy.served import Served
from autobot_mcp_bridge.proxy.streams import ANSWER_HEADERS, event
from autobot_mcp_bridge.proxy.v1.api import Api
from autobot_mcp_bridge.proxy.v1.routes import PREFIX as V1
from autobot_mcp_bridge.proxy.wellknown import PREFIX, metadata

# What the access log shows for a client that went before its answer, as nginx has it.
CLIENT_GONE = 499

HANDSHAKE, MODERN_ERA = Era.HANDSHAKE.value, Era.MODERN.value

log = logging.getLogger(__name__)
access = logging.getLogger("autobot_mcp_bridge.access")


class Endpoint:
    """Answers `/t/…` and `/v1/…`, and the metadata of the former where an issuer is configured."""

    def __init__(self, bridge: Bridge, settings: HostSettings) -> None:
        self._settings = settings
        self._trail = bridge.trail
        self._authenticate = Authenticator(bridge, settings)
        self._refusals = bridge.refusals
        self._api = Api(bridge, self._authenticate)
        self._origins = OriginRule(hosts_of(settings.http), settings.http.allowed_origins)
        self._cors = Cors(settings.http)
        self._forwarded = Forwarded(settings.http.trusted_proxies)
        self._patience = settings.limits.body_timeout
        self._access = settings.log.access

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        began = time.perf_counter()
        client = self._forwarded.client(request.remote, request.headers.getall(HEADER, ()))
        request[CLIENT] = client
        headers = self._cors.answer(request.headers.get("Origin"))
        if headers:
            request[ANSWER_HEADERS] = headers
        try:
            response = await self._serve(request)
        except Refusal as refusal:
            response = refusal.reply
            if response.status == 401:
                self._trail.unauthorized(client)
        except ConnectionError:
            # The client has gone, and nothing arrives any more; aiohttp would log a fault of ours.
            response = web.Response(status=CLIENT_GONE)
        except Exception:
            log.exception("fault while answering a request")
            response = error_reply(500, INTERNAL_ERROR, "internal error")
        if headers and not response.prepared:
            response.headers.update(headers)
        if self._access == "all" or (self._access == "errors" and response.status >= 400):
            _log_access(client, request, response, time.perf_counter() - began)
        return response

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.check_origin(request)
        if request.method == "OPTIONS" and self._is_preflight(request):
            return web.Response(status=204, headers=self._cors.preflight())
        if request.rel_url.raw_path.startswith(PREFIX):
            return metadata(request, self._settings)
        if request.rel_url.raw_path.startswith(V1):
            return await self._api(request)
        try:
            served, principal = await self._authenticate(request)
        except Mismatch as mismatch:
            if request.method != "POST":
                raise
            return await self._tell(request, mismatch)
        match request.method:
            case "POST":
                return await self._post(request, served, principal)
            case "GET" | "DELETE" if request.headers.get(VERSION_HEADER) == MODERN:
                return not_allowed("POST")
            case "GET":
                with recording.begin(self._trail, request, served, principal, None, HANDSHAKE):
                    return await handshake.get(request, served, principal)
            case "DELETE":
                with recording.begin(self._trail, request, served, principal, None, HANDSHAKE):
                    return await handshake.delete(request, served, principal)
            case _:
                return not_allowed("GET, POST, DELETE")

    def check_origin(self, request: web.BaseRequest) -> None:
        """Host and Origin, before anything else (A3, A4)."""
        if not self._origins.host_allowed(single(request, "Host")):
            self._refusals.refused(Refused.of(request, Reason.HOST))
            raise Refusal(error_reply(421, INVALID_REQUEST, "this Host is not served here"))
        origin = single(request, "Origin")
        if origin is not None and not self._origins.origin_allowed(origin):
            self._refusals.refused(Refused.of(request, Reason.ORIGIN))
            raise Refusal(error_reply(403, INVALID_REQUEST, "this Origin is not allowed"))

    def _is_preflight(self, request: web.BaseRequest) -> bool:
        """A browser asks for a page of a configured origin; it never sends a token with that."""
        asked = "Access-Control-Request-Method" in request.headers
        return asked and ANSWER_HEADERS in request

    async def _post(
        self, request: web.BaseRequest, served: Served, principal: Principal
    ) -> web.StreamResponse:
        check_headers(request)
        accepts = check_media(request)
        await expect_continue(request)
        body = await read_body(request, served.spec.caps.body, self._patience)
        if not served.accepts(principal):  # revoked while the body came
            raise self._authenticate.refusal(request)
        document = parse_body(body)
        if isinstance(document, list):
            if request.headers.get(VERSION_HEADER) == MODERN:
                raise Refusal(
                    error_reply(400, INVALID_REQUEST, "batches do not exist in 2026-07-28")
                )
            return await handshake.post_batch(request, served, principal, document, self._trail)
        incoming = read_message(document)
        del body, document
        is_modern = modern.is_modern(request, incoming)
        post, era = (modern.post, MODERN_ERA) if is_modern else (handshake.post, HANDSHAKE)
        # Of this request exactly one record is closed, here or by a stream that outlives it.
        with recording.begin(self._trail, request, served, principal, incoming, era) as record:
            return await post(request, served, principal, incoming, accepts, record)

    async def _tell(self, request: web.BaseRequest, mismatch: Mismatch) -> web.StreamResponse:
        """Answer a request from another project by its id, and read nothing else of it."""
        check_headers(request)
        accepts = check_media(request)
        await expect_continue(request)
        body = await read_body(request, Caps().body, self._patience)
        document = parse_body(body)
        client_id = None if isinstance(document, list) else read_message(document).client_id
        if client_id is None:
            raise mismatch
        told = call_error_body(mismatch.error, client_id)
        if accepts.json:
            return json_reply(told)
        return web.Response(body=event(told), content_type=EVENT_STREAM)


def _log_access(
    client: str, request: web.BaseRequest, response: web.StreamResponse, seconds: float
) -> None:
    """One line: never the query, a header or a body, where tokens and secrets stand (F4)."""
    access.info(
        "%s %s %s %d %.1f ms",
        client,
        request.method,
        request.rel_url.raw_path,
        response.status,
        seconds * 1000,
    )
