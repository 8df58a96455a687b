"""Route and token in one step, and what a refusal says: never which servers there are (NV-11)."""

from aiohttp import web

from autobot_mcp_bridge.model.host import HostSettings
from autobot_mcp_bridge.model.names import parse_path
from autobot_mcp_bridge.model.scopes import fill
from autobot_mcp_bridge.policy.jwks import RETRY, KeysUnavailableError
from autobot_mcp_bridge.policy.oauth import ScopeError
from autobot_mcp_bridge.policy.principals import Principal, digest_of, token_of
from autobot_mcp_bridge.proxy.bridge import Bridge
from autobot_mcp_bridge.proxy.incoming import Refusal
from autobot_mcp_bridge.proxy.replies import cannot_judge, insufficient_scope, unauthorized
from autobot_mcp_bridge.proxy.served import Served
from autobot_mcp_bridge.proxy.wellknown import metadata_url


class Authenticator:
    """Who calls which server, by the bearer token in the header; the query is not looked at (F3)."""

    def __init__(self, bridge: Bridge, settings: HostSettings) -> None:
        self.bridge = bridge
        self._scopes = settings.oauth.scopes
        self._public_url = settings.http.public_url if bridge.access is not None else None

    async def __call__(self, request: web.BaseRequest) -> tuple[Served, Principal]:
        """The server and its caller.

        Raises:
            Refusal: 401, or what only an access token can get: 403, 503.
        """
        path = request.rel_url.raw_path
        credentials = request.headers.getall("Authorization", ())
        if not credentials:
            raise self.refusal(path, sent=False)
        token = token_of(credentials[0]) if len(credentials) == 1 else None
        if token is None:
            raise self.refusal(path, sent=True)
        digest = digest_of(token)
        served = self.bridge.routes.get(path)
        principal = served.tokens.find(digest) if served is not None else None
        if principal is None and self._public_url is not None:
            principal = await self._holder(path, token, digest, served)
        if served is None or principal is None:
            raise self.refusal(path, sent=True)
        return served, principal

    async def _holder(
        self, path: str, token: str, digest: str, served: Served | None
    ) -> Principal | None:
        """Whose access token it is: judged before it counts whether the server exists."""
        access = self.bridge.access
        if access is None:
            return None
        try:
            grant = await access.judge(token, digest)
            if grant is None or served is None or served.resource is None:
                return None
            return access.admit(grant, served.resource)
        except KeysUnavailableError:
            raise Refusal(cannot_judge(RETRY)) from None
        except ScopeError as error:
            hints = {**self._hints(path), "scope": " ".join(error.needed)}
            raise Refusal(insufficient_scope(hints)) from None

    def refusal(self, path: str, *, sent: bool) -> Refusal:
        """The 401 for a path of this form."""
        return Refusal(unauthorized(sent=sent, hints=self._hints(path)))

    def _hints(self, path: str) -> dict[str, str]:
        """Where to get a token, from the path's form alone; nothing without an issuer (F5, F6)."""
        server = parse_path(path) if self._public_url is not None else None
        if server is None or self._public_url is None:
            return {}
        hints = {"resource_metadata": metadata_url(self._public_url, path)}
        if self._scopes:
            hints["scope"] = " ".join(fill(self._scopes, server))
        return hints
