"""Who is calling: bearer tokens, known only by their sha256."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

# A longer header value is not hashed: no token of ours comes near it.
MAX_CREDENTIAL = 4096


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller of one server.

    Attributes:
        digest: sha256 of the token, as 64 hex digits; never the token.
        expires: seconds since the epoch after which it counts no more, or None.
    """

    digest: str
    instance: str
    expires: float | None = None


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


def digest_of(credential: str) -> str | None:
    """The sha256 of a bearer token out of an Authorization value; None if its form is another.

    The scheme is case-insensitive (RFC 9110 section 11.1).
    """
    scheme, _, token = credential.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or len(token) > MAX_CREDENTIAL:
        return None
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
