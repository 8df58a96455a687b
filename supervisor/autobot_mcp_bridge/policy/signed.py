"""Signed access tokens (RFC 7519, RFC 9068): the one module that knows PyJWT.

The library is imported when a token is judged: only a host with an issuer needs it.
"""

import re
from dataclasses import dataclass
from typing import Any

# A compact serialization (RFC 7515 section 7.1); `alg` none would have nothing behind the last dot.
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


class TokenError(Exception):
    """An access token does not count; the message says why, without any of it."""


@dataclass(frozen=True, slots=True)
class Head:
    """Which key a token says that it is signed with (RFC 7515 section 4.1)."""

    algorithm: str
    key_id: str | None


def is_signed(token: str) -> bool:
    """Tell whether it has the form of a signed token; everything else is no affair of an issuer."""
    return _COMPACT.fullmatch(token) is not None


def head_of(token: str) -> Head:
    """What the token says of its signature; nothing of it is proven yet.

    Raises:
        TokenError: it is not readable.
    """
    import jwt

    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise TokenError("its header is not readable") from None
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or not isinstance(key_id, str | None):
        raise TokenError("its header is not readable")
    return Head(algorithm, key_id)


def claims_of(
    token: str, key: dict[str, Any], algorithm: str, issuer: str, leeway: float
) -> dict[str, Any]:
    """The claims of a token that this key has signed, that this issuer has made, and that lasts.

    Who it is for and what it allows is for the caller to see.

    Args:
        token: in compact form.
        key: a public key as JSON (RFC 7517).
        algorithm: the only one that counts, whatever the token or the key says.
        issuer: what `iss` must equal.
        leeway: seconds by which clocks may differ.

    Raises:
        TokenError: it is not such a token.
    """
    import jwt

    required = ["exp", "iss", "aud"]
    try:
        return jwt.decode(
            token,
            jwt.PyJWK.from_dict(key, algorithm),
            algorithms=[algorithm],
            issuer=issuer,
            leeway=leeway,
            options={
                "require": required,
                "verify_aud": False,  # which server it is for is seen later
                "enforce_minimum_key_length": True,
            },
        )
    except jwt.ExpiredSignatureError:
        raise TokenError("it has expired") from None
    except (jwt.ImmatureSignatureError, jwt.InvalidIssuedAtError):
        raise TokenError("it is not valid yet") from None
    except jwt.InvalidIssuerError:
        raise TokenError("another issuer has made it") from None
    except jwt.MissingRequiredClaimError:
        raise TokenError(f"it lacks one of {', '.join(required)}") from None
    except jwt.InvalidSignatureError:
        raise TokenError("its signature is wrong") from None
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
        raise TokenError("it is not a signed token that can be read") from None
