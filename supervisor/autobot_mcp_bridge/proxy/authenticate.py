"""Route and credential in one step, and what a refusal says: never which servers there are (NV-11).

ARCHITECTURE.md has the table of what may be sent together.
"""

from typing import NoReturn

from aiohttp import web

from autobot_mcp_bridge.model.errors import INVALID_REQUEST, CallError, Cause
from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.names import parse_path
from autobot_mcp_bridge.model.scopes import fill
from autobot_mcp_bridge.policy import projects
from autobot_mcp_bridge.policy.jwks import RETRY, KeysUnavailableError
from autobot_mcp_bridge.policy.keys import Holders
from autobot_mcp_bridge.policy.oauth import ScopeError
from autobot_mcp_bridge.policy.principals import (
    Key,
    Principal,
    digest_of,
    key_of,
    token_of,
)
from autobot_mcp_bridge.policy.projects import ProjectMismatchError
from autobot_mcp_bridge.proxy.bridge import Bridge
from autobot_mcp_bridge.proxy.incoming import Refusal, single
from autobot_mcp_bridge.proxy.refusals import Reason, Refused
from autobot_mcp_bridge.proxy.replies import (
    NULL,
    call_error_reply,
    cannot_judge,
    error_reply,
    insufficient_scope,
    unauthorized,
)
from autobot_mcp_bridge.proxy.served import Served
from autobot_mcp_bridge.proxy.wellknown import metadata_url

KEY_HEADER = "X-API-Key"
NOBODY = ""  # no token has such a digest


class Mismatch(Refusal):
    """The caller is known and comes from another project.

    Attributes:
        error: what a request with an id gets; anything else gets it under 403, as `reply`.
    """

    def __init__(self, error: CallError) -> None:
        reply = call_error_reply(error, NULL)
        reply.set_status(403)
        super().__init__(reply)
        self.error = error


class Authenticator:
    """Who calls which server, by what the headers show; the query is not looked at (F3)."""

    def __init__(self, bridge: Bridge, settings: HostSettings) -> None:
        self.bridge = bridge
        self._keys = bridge.keys
        self._holders = Holders()
        self._scopes = settings.oauth.scopes
        self._public_url = settings.http.public_url if bridge.access is not None else None

    async def __call__(self, request: web.BaseRequest) -> tuple[Served, Principal]:
        """The server and its caller.

        Raises:
            Mismatch: the caller is known and comes from another project.
            Refusal: 401; 404 to a key of that tenant; what only an access token can get: 403, 503.
        """
        path = request.rel_url.raw_path
        token, second = self._sent(request)
        digest = digest_of(token) if token is not None else NOBODY
        served = self.bridge.routes.get(path)
        principal = served.tokens.find(digest) if served is not None else None
        key = self._keys.find(digest) if principal is None else None
        if second is not None:
            # It says who calls; beside it stands the token of that server, or nothing.
            if key is not None or (token is not None and principal is None):
                self._refuse(request)
            key = self._keys.find(digest_of(second))
            if key is None:
                self._refuse(request)
        if key is not None:
            return self._held(request, path, key, served, principal)
        if principal is None and token is not None and self._public_url is not None:
            principal = await self._granted(request, path, token, digest, served)
        if served is None or principal is None:
            self._refuse(request)
        try:
            projects.check_named(served.spec.project, single(request, projects.HEADER))
        except ProjectMismatchError as error:
            self._mismatch(request, error, instance=served.spec.instance)
        return served, principal

    def holder(self, request: web.BaseRequest) -> tuple[Key, str | None]:
        """Whose key the request shows, and from which project; for what is no server's endpoint.

        Raises:
            Mismatch: key and header disagree about the project.
            Refusal: 401, also to a token, which is for one server's endpoint.
        """
        token, second = self._sent(request)
        if token is not None and second is not None:
            self._refuse(request)
        key = self._keys.find(digest_of(token or second or ""))
        if key is None:
            self._refuse(request)
        self._keys.used(key)
        return key, self._context(request, key)

    def refusal(self, request: web.BaseRequest, *, sent: bool = True) -> Refusal:
        """The 401 for a path of this form, which is noted."""
        reason = Reason.NOT_VALID if sent else Reason.NO_CREDENTIAL
        self.bridge.refusals.refused(Refused.of(request, reason))
        hints = self._hints(request.rel_url.raw_path)
        return Refusal(unauthorized(sent=sent, hints=hints))

    def _sent(self, request: web.BaseRequest) -> tuple[str | None, str | None]:
        """What stands in Authorization, and in X-API-Key; each at most once and in its form."""
        headers = request.headers
        bearers = headers.getall("Authorization", ())
        keys = headers.getall(KEY_HEADER, ())
        if not bearers and not keys:
            raise self.refusal(request, sent=False)
        token = token_of(bearers[0]) if len(bearers) == 1 else None
        key = key_of(keys[0]) if len(keys) == 1 else None
        if (token is None and bearers) or (key is None and keys):
            self._refuse(request)
        return token, key

    def _held(
        self,
        request: web.BaseRequest,
        path: str,
        key: Key,
        served: Served | None,
        beside: Principal | None,
    ) -> tuple[Served, Principal]:
        """The holder of a key at a path of its own tenant; elsewhere it is a stranger.

        The path is judged before it counts whether the server exists.
        """
        if not path.startswith(f"/t/{key.tenant}/"):
            self._refuse(request)
        self._keys.used(key)
        context = self._context(request, key)
        server = parse_path(path)
        if server is not None:
            try:
                projects.check_call(server.project, context)
            except ProjectMismatchError as error:
                self._mismatch(request, error, key, context, server.instance)
        if server is None or served is None:
            self.bridge.refusals.refused(Refused.of(request, Reason.UNKNOWN, key, context=context))
            raise Refusal(error_reply(404, INVALID_REQUEST, "there is no such server"))
        return served, self._holders.principal(key, server, context, beside)

    def _context(self, request: web.BaseRequest, key: Key) -> str | None:
        try:
            return projects.context_of(key, single(request, projects.HEADER))
        except ProjectMismatchError as error:
            self._mismatch(request, error, key, key.project)

    async def _granted(
        self, request: web.BaseRequest, path: str, token: str, digest: str, served: Served | None
    ) -> Principal | None:
        """Whose access token it is: judged before it counts whether the server exists."""
        access, refused = self.bridge.access, self.bridge.refusals.refused
        if access is None:
            return None
        try:
            grant = await access.judge(token, digest)
            if grant is None or served is None or served.resource is None:
                return None
            return access.admit(grant, served.resource)
        except KeysUnavailableError:
            refused(Refused.of(request, Reason.ISSUER))
            raise Refusal(cannot_judge(RETRY)) from None
        except ScopeError as error:
            refused(Refused.of(request, Reason.SCOPE))
            hints = {**self._hints(path), "scope": " ".join(error.needed)}
            raise Refusal(insufficient_scope(hints)) from None

    def _refuse(self, request: web.BaseRequest) -> NoReturn:
        raise self.refusal(request)

    def _mismatch(
        self,
        request: web.BaseRequest,
        error: ProjectMismatchError,
        key: Key | None = None,
        context: str | None = None,
        instance: str | None = None,
    ) -> NoReturn:
        self.bridge.refusals.refused(
            Refused.of(
                request, Reason.PROJECT, key, context=context, instance=instance, detail=str(error)
            )
        )
        raise Mismatch(CallError(Cause.PROJECT_MISMATCH, str(error))) from None

    def _hints(self, path: str) -> dict[str, str]:
        """Where to get a token, from the path's form alone; nothing without an issuer (F5, F6)."""
        server = parse_path(path) if self._public_url is not None else None
        if server is None or self._public_url is None:
            return {}
        hints = {"resource_metadata": metadata_url(self._public_url, path)}
        if self._scopes:
            hints["scope"] = " ".join(fill(self._scopes, server))
        return hints
