"""Who is calling: bearer tokens, known only by their sha256, and what an issuer says of others."""

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

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
class Principal:
    """An authenticated caller of one server.

    Attributes:
        digest: sha256 of the token, as 64 hex digits, never the token; or the grant's subject.
        expires: seconds since the epoch after which it counts no more, or None.
        grant: what an access token says; None for a static token.
    """

    digest: str
    instance: str
    expires: float | None = None
    grant: Grant | None = None

    def outlasts(self, other: "Principal") -> bool:
        """Tell whether the same caller has shown a token that counts for longer."""
        mine, others = self.expires or math.inf, other.expires or math.inf
        return mine > others


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


def digest_of(token: str) -> str:
    """The sha256 of a token, which is all that is kept of it."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
