"""Who is calling: tokens and keys, known only by their sha256, and what an issuer says of others."""

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

from autobot_mcp_bridge.model.agents import Role

# A longer header value is not looked at: no token of ours comes near it, and few of an issuer's.
MAX_CREDENTIAL = 8192


@dataclass(frozen=True, slots=True)
class Grant:
    """What an issuer's access token says, once its signature has been seen to be right.

    Attributes:
        subject: digest of issuer, subject and client: the same for each of their tokens.
        audiences: whom it is for (RFC 8707: URLs of endpoints).
        scopes: what it allows.
        expires: seconds since the epoch after which it counts no more.
        key: digest of the key that has signed it.
    """

    subject: str
    audiences: frozenset[str]
    scopes: frozenset[str]
    expires: float
    key: str

    def memo(self) -> list[object]:
        """What a later process recalls it from; as JSON."""
        return [sorted(self.audiences), sorted(self.scopes), self.expires, self.key]

    @classmethod
    def recall(cls, subject: str, memo: object) -> Self | None:
        """What `memo` has written; None for anything else."""
        match memo:
            case [list(audiences), list(scopes), float(expires), str(key)]:
                words = frozenset(map(str, audiences)), frozenset(map(str, scopes))
                return cls(subject, *words, expires, key)
        return None


@dataclass(frozen=True, slots=True)
class Key:
    """A secret of an API key: who holds it, and for what.

    Attributes:
        sha256: of its secret, as 64 hex digits.
        id: what it is named by; a rotated key keeps it.
        created: seconds since the epoch: of two secrets of a key the later one replaces the other.
        project: the one that it is bound to; None for all of the tenant.
        expires: seconds since the epoch after which this secret counts no more, or None.
    """

    sha256: str
    id: str
    created: float
    tenant: str
    project: str | None
    roles: frozenset[Role]
    agent_id: str
    agent_type: str
    expires: float | None = None

    def says(self, other: "Key") -> bool:
        """Tell whether both are one secret and stand for the same; how long may differ."""
        return replace(self, expires=None) == replace(other, expires=None)


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller of one server.

    Attributes:
        digest: who it is, as 64 hex digits: the sha256 of a token, never the token; a grant's
            subject; or of a key and the project that it calls from.
        expires: seconds since the epoch after which it counts no more, or None.
        grant: what an access token says; None for a static token.
        key: what an API key says; None for who has shown none.
        token: the sha256 of the token that was shown beside the key, if one was.
        project: which it calls from, as a key or its header says; None without either.
    """

    digest: str
    instance: str
    expires: float | None = None
    grant: Grant | None = None
    key: Key | None = None
    token: str | None = None
    project: str | None = None

    def outlasts(self, other: "Principal") -> bool:
        """Tell whether the same caller has shown what counts for longer, or in the other's place."""
        if self.key is not None and other.key is not None:
            if self.key.created != other.key.created:
                return self.key.created > other.key.created
            return self.token != other.token
        mine, others = self.expires or math.inf, other.expires or math.inf
        return mine > others


def principal_of(
    key: Key, instance: str, project: str | None, beside: Principal | None = None
) -> Principal:
    """The caller of one server who has shown a key, and perhaps the server's token beside it."""
    expires, token = key.expires, None
    if beside is not None:
        token = beside.digest
        ends = [each for each in (key.expires, beside.expires) if each is not None]
        expires = min(ends, default=None)
    digest = _subject(key.tenant, key.id, project)
    return Principal(digest, instance, expires, key=key, token=token, project=project)


@lru_cache(maxsize=4096)
def _subject(tenant: str, key_id: str, project: str | None) -> str:
    """The same for each secret of a key, another for each project that it calls from.

    No digest of a token can equal it: a header cannot carry NUL.
    """
    text = "\0key\0" + "\0".join((tenant, key_id, project or "-"))
    return hashlib.sha256(text.encode()).hexdigest()


class TokenIndex:
    """The tokens of one server. Immutable: a change makes a new one."""

    def __init__(self, principals: Iterable[Principal], now: Callable[[], float]) -> None:
        self._by_digest = {principal.digest: principal for principal in principals}
        self._now = now

    def find(self, digest: str) -> Principal | None:
        """The caller whose token has this digest, unless it has expired."""
        principal = self._by_digest.get(digest)
        if principal is None:
            return None
        if principal.expires is not None and principal.expires <= self._now():
            return None
        return principal

    def __len__(self) -> int:
        return len(self._by_digest)


def token_of(credential: str) -> str | None:
    """The bearer token out of an Authorization value; None if its form is another.

    The scheme is case-insensitive (RFC 9110 section 11.1).
    """
    scheme, _, token = credential.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or len(token) > MAX_CREDENTIAL:
        return None
    return token


def key_of(value: str) -> str | None:
    """The key out of an X-API-Key value; None if its form is another."""
    key = value.strip()
    return key if key and len(key) <= MAX_CREDENTIAL else None


def digest_of(token: str) -> str:
    """The sha256 of a token, which is all that is kept of it."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
