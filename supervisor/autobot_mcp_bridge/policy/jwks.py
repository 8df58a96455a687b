"""The public keys of one issuer: kept, renewed, asked for again when a token names another.

They are renewed when they are needed, by one request at a time and never more often than every
RETRY seconds, whatever tokens strangers send. While the issuer gives none, the last ones count.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from autobot_mcp_bridge.model.host import OAuth
from autobot_mcp_bridge.model.quantities import show_duration
from autobot_mcp_bridge.policy.discovery import IssuerError, KeySource

# Between two requests for keys, seconds.
RETRY = 5.0
# Of one JWK set; issuers have two or three.
MAX_KEYS = 64
# The type, and the curve where there is one, that an algorithm needs (RFC 7518, RFC 8037).
_RSA = ("RSA", None)
_FITS = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), _RSA),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}

log = logging.getLogger(__name__)


class KeysUnavailableError(Exception):
    """There are no keys to judge a token with."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One key of a JWK set (RFC 7517).

    Attributes:
        public: its JSON.
        digest: of that JSON, so that a key is known again.
    """

    public: dict[str, Any]
    digest: str

    def fits(self, algorithm: str, key_id: str | None) -> bool:
        """Tell whether a token with this header can have been signed with it."""
        kind, curve = _FITS[algorithm]
        key = self.public
        return (
            key.get("kty") == kind
            and (curve is None or key.get("crv") == curve)
            and key.get("alg", algorithm) == algorithm
            and (key_id is None or key.get("kid") == key_id)
        )


class Keys:
    """The keys of one issuer, as one event loop uses them."""

    def __init__(
        self, source: KeySource, settings: OAuth, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._source = source
        self._settings = settings
        self._now = now
        self._keys: dict[str, PublicKey] = {}
        self._had: float | None = None  # when the keys came
        self._asked: float | None = None  # when they were last asked for
        self._asking: asyncio.Task[None] | None = None
        self.well = True  # whether it gave keys when it was last asked

    async def find(self, algorithm: str, key_id: str | None) -> PublicKey | None:
        """The key of a token with this header; None if the issuer has no such key.

        Args:
            algorithm: one of those that the settings allow.
            key_id: None means the only key that fits.

        Raises:
            KeysUnavailableError: the issuer gives no keys, and none are kept.
        """
        self.renew()
        if not self.usable:
            await self._asked_now()
            if not self.usable:
                raise KeysUnavailableError
        found = self._match(algorithm, key_id)
        if found is None and await self._asked_now():
            found = self._match(algorithm, key_id)
        return found

    def knows(self, digest: str) -> bool:
        """Tell whether the issuer still has this key, as far as it has said."""
        return self._had is None or digest in self._keys

    def renew(self) -> None:
        """Ask for the keys again, in the background, if they are no longer fresh."""
        if self._had is None or self._now() - self._had > self._settings.keys_fresh:
            self._ask()

    @property
    def usable(self) -> bool:
        """Whether there are keys that still count."""
        return self._had is not None and self._now() - self._had <= self._settings.keys_kept

    def _match(self, algorithm: str, key_id: str | None) -> PublicKey | None:
        fitting = [key for key in self._keys.values() if key.fits(algorithm, key_id)]
        return fitting[0] if len(fitting) == 1 else None

    async def _asked_now(self) -> bool:
        """Wait for an answer that is under way, or that may be asked for; whether there was one."""
        task = self._ask()
        if task is None:
            return False
        await asyncio.shield(task)  # a client that goes does not take the answer from the others
        return True

    def _ask(self) -> asyncio.Task[None] | None:
        if self._asking is not None and not self._asking.done():
            return self._asking
        if self._asked is not None and self._now() - self._asked < RETRY:
            return None
        self._asked = self._now()
        self._asking = asyncio.create_task(self._fetch(), name="keys of the issuer")
        return self._asking

    async def _fetch(self) -> None:
        """Bounded by the source's deadline; a failure is logged once, and its end."""
        issuer = self._settings.issuer
        try:
            keys = _read(await self._source.fetch())
            if not keys:
                raise IssuerError("its JWK set holds no key for a signature that counts")
        except IssuerError as error:
            if self.well:
                self.well = False
                log.warning("the keys of %s cannot be had: %s; %s", issuer, error, self._means())
            return
        except Exception:
            log.exception("fault while asking %s for its keys", issuer)
            return
        if not self.well:
            self.well = True
            log.warning("the keys of %s can be had again", issuer)
        self._keys, self._had = keys, self._now()

    def _means(self) -> str:
        if self._had is None:
            return "its access tokens get 503 until then"
        left = max(0.0, self._had + self._settings.keys_kept - self._now())
        return f"the last ones count for {show_duration(round(left))} more"


def _read(found: Iterable[Any]) -> dict[str, PublicKey]:
    """The keys for signatures, by digest; what else a set holds is passed over."""
    keys: dict[str, PublicKey] = {}
    for public in found:
        if not isinstance(public, dict) or public.get("use", "sig") != "sig":
            continue
        if (public.get("kty"), public.get("crv")) not in _FITS.values():
            continue
        text = json.dumps(public, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        keys[digest] = PublicKey(public, digest)
        if len(keys) == MAX_KEYS:
            break
    return keys
