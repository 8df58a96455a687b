"""Who calls with an access token of the configured issuer, and what it is let in to (RFC 9068)."""

import hashlib
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autobot_mcp_bridge.model.budget import Budget
from autobot_mcp_bridge.model.host import HostSettings, OAuth
from autobot_mcp_bridge.model.scopes import fill
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.policy.discovery import Issuer
from autobot_mcp_bridge.policy.jwks import Keys
from autobot_mcp_bridge.policy.principals import Grant, Principal
from autobot_mcp_bridge.policy.signed import TokenError, claims_of, head_of, is_signed

# Tokens whose signature has been seen to be right; the one unused for longest goes first.
MAX_REMEMBERED = 4096
# Seconds since 1970 that any clock will show; a claim may be larger than a float can hold.
LAST = 1 << 40
# Reasons of refusals in the log: so many at once, so many a second.
REASONS_BURST, REASONS_RATE = 10, 0.1

log = logging.getLogger(__name__)


class ScopeError(Exception):
    """The token is for this server, but its scope does not suffice; `needed` would."""

    def __init__(self, needed: tuple[str, ...]) -> None:
        super().__init__(" ".join(needed))
        self.needed = needed


@dataclass(frozen=True, slots=True)
class Resource:
    """One server as access tokens know it (RFC 8707).

    Attributes:
        url: what a token's audience has to hold.
        needed: scopes that it has to have.
    """

    instance: str
    url: str
    needed: tuple[str, ...]


class AccessTokens:
    """The access tokens of one issuer, for all servers of one public URL."""

    def __init__(
        self,
        public_url: str,
        settings: OAuth,
        keys: Keys,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._public_url = public_url
        self._settings = settings
        self._issuer = settings.issuer or ""
        self._keys = keys
        self._now = now
        self._seen: OrderedDict[str, Grant] = OrderedDict()
        self._reasons = Budget(REASONS_RATE, REASONS_BURST, time.monotonic())

    @property
    def issuer_well(self) -> bool:
        """Whether the issuer gave keys when it was last asked."""
        return self._keys.well

    async def judge(self, token: str, digest: str) -> Grant | None:
        """What the token grants, whichever server is asked; None if it does not count.

        Which servers there are plays no part, so that neither the answer nor the time that it
        takes tells of them.

        Args:
            token: as it was sent.
            digest: its sha256; the token itself is not kept.

        Raises:
            KeysUnavailableError: it cannot be told, for the issuer gives no keys.
        """
        seen = self._seen.get(digest)
        if seen is not None and self.lasts(seen) and self._keys.usable:
            self._seen.move_to_end(digest)
            self._keys.renew()
            return seen
        self._seen.pop(digest, None)
        if not is_signed(token):
            return None
        try:
            grant = await self._read(token)
        except TokenError as error:
            self._tell(f"an access token does not count: {error}")
            return None
        self._seen[digest] = grant
        if len(self._seen) > MAX_REMEMBERED:
            self._seen.popitem(last=False)
        return grant

    def resource(self, spec: ServerSpec) -> Resource:
        """What a server is to tokens, until its definition changes."""
        scopes = self._settings.scopes if spec.scopes is None else spec.scopes
        return Resource(spec.instance, self._public_url + spec.id.path, fill(scopes, spec.id))

    def admit(self, grant: Grant, resource: Resource) -> Principal | None:
        """The caller at one server; None if the token is for another.

        Raises:
            ScopeError: it is for this one, but allows too little.
        """
        if resource.url not in grant.audiences:
            self._tell(f"an access token does not count: its audience is not {resource.url}")
            return None
        if not grant.scopes.issuperset(resource.needed):
            raise ScopeError(resource.needed)
        return Principal(grant.subject, resource.instance, grant.expires, grant)

    def accepts(self, grant: Grant, resource: Resource) -> bool:
        """Tell whether the holder would be let in now as well."""
        self._keys.renew()
        return (
            self.lasts(grant)
            and resource.url in grant.audiences
            and grant.scopes.issuperset(resource.needed)
        )

    def lasts(self, grant: Grant) -> bool:
        """Neither expired nor signed with a key that the issuer has taken back."""
        return grant.expires > self._now() and self._keys.knows(grant.key)

    async def _read(self, token: str) -> Grant:
        head = head_of(token)
        if head.algorithm not in self._settings.algorithms:
            raise TokenError("its algorithm is not allowed")
        key = await self._keys.find(head.algorithm, head.key_id)
        if key is None:
            raise TokenError("its issuer has no such key")
        leeway = self._settings.leeway
        claims = claims_of(token, key.public, head.algorithm, self._issuer, leeway)
        if "cnf" in claims:
            # RFC 7800: only who proves to have that key may use it, and nobody asks for proof here.
            raise TokenError("it is bound to a key of its client")
        return Grant(
            subject=_subject(self._issuer, claims),
            audiences=frozenset(_words(claims["aud"])),
            scopes=frozenset(_scopes(claims)),
            expires=float(min(int(claims["exp"]), LAST)) + leeway,
            key=key.digest,
        )

    def _tell(self, text: str) -> None:
        if self._reasons.take(time.monotonic()):
            log.info("%s", text)


def access_tokens(settings: HostSettings) -> AccessTokens | None:
    """What judges access tokens on this host; None where no issuer is configured."""
    oauth, public_url = settings.oauth, settings.http.public_url
    if oauth.issuer is None or public_url is None:
        return None
    keys = Keys(Issuer(oauth.issuer, oauth.jwks_uri), oauth)
    return AccessTokens(public_url, oauth, keys)


def _subject(issuer: str, claims: dict[str, Any]) -> str:
    """Whose token it is, the same for each one that is renewed.

    No digest of a token can equal it: a header cannot carry NUL.
    """
    client = claims.get("client_id", claims.get("azp", ""))
    subject = claims.get("sub", "")
    if not isinstance(client, str) or not (client or subject):
        raise TokenError("it names neither a subject nor a client")
    text = json.dumps([issuer, subject, client])
    return hashlib.sha256(f"\0{text}".encode()).hexdigest()


def _scopes(claims: dict[str, Any]) -> list[str]:
    """`scope` (RFC 9068), or `scp` as some issuers have it."""
    value = claims.get("scope", claims.get("scp", ""))
    return _words(value.split(" ") if isinstance(value, str) else value)


def _words(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [word for word in values if isinstance(word, str) and word.isascii()]
