"""The tokens of each server: made here, printed once, kept as sha256 only.

One file per server, named by its whole instance name (never a prefix of it), so that a broken
file shuts out one server's callers and nobody else's.
"""

import time
from dataclasses import dataclass
from typing import Any

from autobot_mcp_bridge.config.digests import (
    DEFAULT_OVERLAP,
    DigestRecord,
    DigestStore,
    digest_of,
    ending,
    random_id,
    random_secret,
)
from autobot_mcp_bridge.model.names import parse_instance

__all__ = ["DEFAULT_OVERLAP", "TokenRecord", "TokenStore", "digest_of"]

PREFIX = "mcpb_"
MAX_TOKENS = 100  # of one server: each is compared at every call


@dataclass(frozen=True, slots=True)
class TokenRecord(DigestRecord):
    """A token of one server, which the file's name tells."""


class TokenStore(DigestStore[TokenRecord]):
    """The files `<instance>.json` below one directory. Every method blocks (disk, a file lock)."""

    words = ("token", "tokens")
    owner = "server's instance"

    def new(
        self, instance: str, label: str = "", expires: float | None = None
    ) -> tuple[str, TokenRecord]:
        """Make one more token. The token is returned here and never again.

        Raises:
            UsageError: the server has MAX_TOKENS.
            DataError: its file is broken.
        """
        token, record = _make(label, expires)
        self._edit(instance, lambda records, _now: [*records, record])
        return token, record

    def rotate(
        self, instance: str, overlap: float = DEFAULT_OVERLAP, label: str = ""
    ) -> tuple[str, TokenRecord]:
        """Make a new token; every older one counts for `overlap` seconds more at most.

        Raises:
            DataError: its file is broken.
        """
        token, record = _make(label, None)

        def older_end(records: list[TokenRecord], now: float) -> list[TokenRecord]:
            return [*(ending(old, now + overlap) for old in records), record]

        self._edit(instance, older_end)
        return token, record

    def _named(self, text: str) -> str:
        return parse_instance(text).instance

    def _parsed(self, item: dict[str, Any]) -> TokenRecord:
        return TokenRecord(**item)

    @property
    def _most(self) -> int:
        return MAX_TOKENS


def _make(label: str, expires: float | None) -> tuple[str, TokenRecord]:
    token = random_secret(PREFIX)
    return token, TokenRecord(random_id(), digest_of(token), time.time(), expires, label)
