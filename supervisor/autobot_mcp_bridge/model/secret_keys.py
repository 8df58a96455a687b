"""Which names say that what they name is secret: of arguments, headers and variables."""

import re
from functools import lru_cache

_SUFFIXES = (
    *("_token", "_password", "_secret", "_key", "_credentials"),
    *("_pwd", "_pass", "_auth", "_passwd", "_cookie"),
)
_NAMES = frozenset(
    {
        *("authorization", "proxy_authorization", "cookie", "set_cookie", "session", "bearer"),
        *("password", "passwd", "pwd", "passphrase", "token", "secret", "credentials"),
        *("api_key", "apikey", "access_token", "refresh_token", "private_key", "secret_key"),
        *("lease_id", "accessor", "secret_id", "role_id"),
    }
)
# A longer name is no name; one that is looked up costs nothing the second time.
_LONGEST = 256
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def is_secret_key(name: str) -> bool:
    """Tell whether a value of this name is never shown: `API_KEY`, `api-key` and `apiKey` alike."""
    return _judged(name[-_LONGEST:])


@lru_cache(maxsize=2048)
def _judged(name: str) -> bool:
    low = _HUMP.sub("_", name).lower().replace("-", "_").strip()
    return low in _NAMES or low.endswith(_SUFFIXES) or name.lower() in _NAMES
