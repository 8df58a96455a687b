"""`/v1/…`: who asks, what for, whether the asker may, and only then the handler."""

from http import HTTPStatus
from typing import NoReturn

from aiohttp import web

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.model.errors import INVALID_REQUEST, CallError, Cause
from autobot_mcp_bridge.model.names import ServerId, parse_instance
from autobot_mcp_bridge.policy.projects import ProjectMismatchError, check_call, may_view
from autobot_mcp_bridge.proxy.authenticate import Authenticator, Mismatch
from autobot_mcp_bridge.proxy.bridge import Bridge
from autobot_mcp_bridge.proxy.incoming import Refusal, check_headers
from autobot_mcp_bridge.proxy.refusals import Reason, Refused
from autobot_mcp_bridge.proxy.replies import (
    NULL,
    call_error_reply,
    error_reply,
    json_reply,
    not_allowed,
)
from autobot_mcp_bridge.proxy.served import Served
from autobot_mcp_bridge.proxy.v1.asked import Asked, bad_query, cursor_of, limit_of
from autobot_mcp_bridge.proxy.v1.openapi import document
from autobot_mcp_bridge.proxy.v1.routes import OPENAPI, Route, find

# What a call's failure is here, where it would be 200 with an error in it at an MCP endpoint.
_STATUS = {Cause.CALL_TIMEOUT: HTTPStatus.GATEWAY_TIMEOUT}


class Api:
    """Answers all of `/v1/`."""

    def __init__(self, bridge: Bridge, authenticator: Authenticator) -> None:
        self._bridge = bridge
        self._authenticator = authenticator

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if path == OPENAPI:
            return json_reply(document()) if request.method == "GET" else not_allowed("GET")
        check_headers(request)
        key, context = self._authenticator.holder(request)
        routes = find(path)
        if not routes:
            return error_reply(404, INVALID_REQUEST, "there is no such route")
        if request.method not in routes:
            return not_allowed(", ".join(routes))
        route, name = routes[request.method]
        asked = self._asked(request, route, Asked(self._bridge, key, context))
        if route.about_all is not None:
            body = await route.about_all(asked)
        elif route.about is not None:
            served = self._server(request, route, asked, name)
            try:
                body = await route.about(asked, served)
            except CallError as error:
                return _failure(error)
        return json_reply(jsonrpc.dumps(body.model_dump()))

    def _asked(self, request: web.BaseRequest, route: Route, asked: Asked) -> Asked:
        """With what the query says.

        Raises:
            Refusal: a parameter is unknown, doubled or not allowed.
        """
        limit, cursor = asked.limit, asked.cursor
        query = request.rel_url.query
        for name in query:
            if name not in route.query or len(query.getall(name)) > 1:
                allowed = f"each of {', '.join(route.query)} once" if route.query else "none here"
                raise bad_query(ascii(name[:64]), allowed)
        if "limit" in query:
            limit = limit_of(query["limit"])
        if "cursor" in query:
            cursor = cursor_of(query["cursor"])
        return Asked(asked.bridge, asked.key, asked.context, limit, cursor)

    def _server(self, request: web.BaseRequest, route: Route, asked: Asked, name: str) -> Served:
        """The server that is asked about: judged by its name before it counts whether it exists.

        Raises:
            Refusal: 404 for another tenant's and one that is not there, 403 for another project's
                and where the role does not suffice.
        """
        key, context = asked.key, asked.context
        try:
            server = parse_instance(name)
        except ValueError:
            server = None
        if server is None or server.tenant != key.tenant:
            self._unknown(request, asked)
        if route.changes or not may_view(key, server.project, context):
            try:
                check_call(server.project, context)
            except ProjectMismatchError as error:
                self._note(request, asked, Reason.PROJECT, server, str(error))
                raise Mismatch(CallError(Cause.PROJECT_MISMATCH, str(error))) from None
        shared = server.project is None and key.project is not None
        if route.role is not None and (route.role not in key.roles or shared):
            text = f"this needs a key with the role {route.role.value}"
            if shared:
                text += ", which is not bound to a project: all projects share the server"
            self._note(request, asked, Reason.ROLE, server, text)
            data = {"code": Reason.ROLE.value}
            raise Refusal(error_reply(403, INVALID_REQUEST, text, data=data))
        served = self._bridge.routes.get(server.path)
        if served is None:
            self._unknown(request, asked)
        return served

    def _unknown(self, request: web.BaseRequest, asked: Asked) -> NoReturn:
        self._note(request, asked, Reason.UNKNOWN)
        data = {"code": Reason.UNKNOWN.value}
        raise Refusal(error_reply(404, INVALID_REQUEST, "there is no such server", data=data))

    def _note(
        self,
        request: web.BaseRequest,
        asked: Asked,
        reason: Reason,
        server: ServerId | None = None,
        detail: str = "",
    ) -> None:
        instance = server.instance if server is not None else None
        self._bridge.refusals.refused(
            Refused.of(
                request,
                reason,
                asked.key,
                context=asked.context,
                instance=instance,
                detail=detail,
            )
        )


def _failure(error: CallError) -> web.Response:
    """What a server did not answer, under a status that says so."""
    reply = call_error_reply(error, NULL)
    if reply.status < HTTPStatus.BAD_REQUEST:
        reply.set_status(_STATUS.get(error.cause, HTTPStatus.BAD_GATEWAY))
    return reply
