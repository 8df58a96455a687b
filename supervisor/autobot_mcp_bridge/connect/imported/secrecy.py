"""What looks like a secret, by its name, by its form, and by chance.

A value that is taken for one in error costs a line of the secret store; one that is overlooked
stands in a file that everybody may read. So in doubt it is one.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

# Words within a name, however it is written: API_KEY, apiKey, x-api-key, pgpassword.
_NAMES = re.compile(
    r"token|secret|passw|passphrase|passcode|pwd|credential|authoriz|cookie|session|bearer|jwt|"
    r"api_?key|app_?key|access_?key|account_?key|private|signature|signing|webhook|dsn|"
    r"connection_?str|conn_?str|database_?ur[il]|db_?ur[il]|mongo\w*_?ur[il]|redis_?ur[il]|"
    r"mnemonic|seed_?phrase|hmac|encrypt|licen[cs]e_?key|oauth"
)
_WORDS = frozenset({"key", "keys", "auth", "pass", "pat", "pin", "otp", "salt", "sig", "apikey"})
_PLAIN_NAMES = re.compile(
    r"(?:max|min|num|limit|count|size|ttl|timeout|expir\w*|budget|ratio|length|enabled?|disabled?|"
    r"mode|type|method|version|level|port|host|region|scopes?|issuer|audience|algorithm|endpoint)"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")
# What says yes, no or how many is nobody's secret.
_SWITCH = re.compile(
    r"(?i)true|false|yes|no|on|off|none|null|auto|default|oauth2?|bearer|basic|\s*"
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
# A key of AWS may begin with a slash, so that only a path that begins like one is one.
_PATH = re.compile(
    r"(?:~|\.{1,2}|/(?:home|Users|root|etc|opt|var|run|usr|srv|mnt|tmp|data|app|workspaces?))"
    r"/[\w .@~+/\\-]*"
)
# The first characters that issuers give their tokens so that they are found where they should not
# be. A digit has to follow: `npm_config_cache` and `sk-learn-models` are none.
_KNOWN = re.compile(
    r"(?<![\w-])(?:"
    r"(?:sk|glpat|gldt|glrt|xox[a-z]|xapp|tvly|nvapi|pplx|xai|fc|PMAK|NRAK|tskey|ctx7sk)-"
    r"(?=[\w-]*\d)[\w-]{8,}|"
    r"(?:sk|rk|pk|ghp|gho|ghu|ghs|ghr|github_pat|hf|npm|dop_v1|doo_v1|shp(?:at|ca|pa|ss)|figd|figu|"
    r"lin_api|lin_oauth|ntn|r8|sntry[su]|sbp|sb_secret|dckr_(?:pat|oat)|gsk|pcsk|rnd|apify_api|glsa|"
    r"glc|lsv2|mcpb|whsec|secret|rpa|pul|key|pat)_(?=[\w-]*\d)[\w.-]{8,}|"
    r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{12,}|AIza[\w-]{20,}|ya29\.[\w.-]{8,}|1//[\w-]{20,}|hv[sb]\.\w{12,}|"
    r"SG\.[\w-]{8,}\.[\w-]{8,}|EAA[A-Za-z0-9]{20,}|pypi-[\w-]{16,}|eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?|"
    r"\d{6,}:AA[\w-]{30,}|[a-f0-9]{32}-us\d{1,2}|ATATT[\w=-]{16,}|pat[A-Za-z0-9]{14}\.[a-f0-9]{16,})"
)
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY|AGE-SECRET-KEY-1|PuTTY-User-Key")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|digest|apikey|aws4-hmac-sha256)[ \t]+\S")
_USERINFO = re.compile(r"[a-z][a-z0-9+.-]{0,30}://[^/\s:@]*:[^/\s]+@", re.IGNORECASE)
_URL = re.compile(r"(?i)[a-z][a-z0-9+.-]{0,30}://[^\s\"'<>]+")
_LONGEST_URL = 4096
_PAIR = re.compile(r"([A-Za-z][\w .-]{1,40})\s*=\s*(?:\"([^\"]+)\"|'([^']+)'|([^\s;&\"',]+))")
_RUN = re.compile(r"[A-Za-z0-9+/_~=.-]{16,}")
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PIECE = re.compile(r"[A-Za-z0-9]{20,}")
_LEAST_BITS = (
    3.2  # of a character; English words and identifiers stay below, 20 random hex digits not
)
_MOST_LOOKED_AT = 65536
_MOST_NAME = 256
_SHORT = 16  # characters of a word that says how, and holds nothing
# Stands where a person was to put a value.
_STAND_IN = re.compile(
    r"(?i)<[^<>\d]{1,60}>|\[[a-z _-]{1,60}\]|x{3,}|\*{3,}|\.{3}|…|change[-_ ]?me|todo|"
    r"(?:your|insert|enter|replace|paste)[-_ ][^\d]{0,60}|[^\d]{0,40}[-_ ](?:goes[-_ ])?here"
)


def is_stand_in(value: str) -> bool:
    """Whether the text only says that a value belongs there: `<your token>`, `YOUR_API_KEY`."""
    return _STAND_IN.fullmatch(value.strip()) is not None


def names_a_secret(name: str) -> bool:
    """Whether a variable, an option or a header is called like a secret."""
    parts = _parts(name)
    words = "_".join(parts).lower()
    if not parts or (parts[-1].lower() in {"file", "path", "dir"}):
        return False
    return _NAMES.search(words) is not None or not _WORDS.isdisjoint(words.split("_"))


def _parts(name: str) -> list[str]:
    """The words of a name, of what a person would write as one."""
    return [part for part in _SEPARATOR.split(_CAMEL.sub("_", name[:_MOST_NAME])) if part]


def is_secret(name: str, value: str) -> bool:
    """Whether what a variable, an option or a header holds has to be kept from others.

    Args:
        name: its own; empty where it has none.
        value: its text.
    """
    if _SWITCH.fullmatch(value):
        return False
    if "\n" in value:
        return True  # a key or a document; no variable of a definition could hold it
    if names_a_secret(name) and not _is_setting(name, value):
        return True
    return holds_secret(value) or _is_random(name, value)


def _is_setting(name: str, value: str) -> bool:
    """MAX_TOKENS=4096, AUTH_MODE=oauth, GOOGLE_APPLICATION_CREDENTIALS=/home/me/key.json."""
    words = [part.lower() for part in _parts(name)]
    counts = _NUMBER.fullmatch(value) and any(map(_PLAIN_NAMES.fullmatch, words))
    says_how = bool(words) and _PLAIN_NAMES.fullmatch(words[-1]) and len(value) < _SHORT
    return bool(counts or says_how or _PATH.fullmatch(value))


def holds_secret(text: str) -> bool:
    """Whether a secret is known by its form, wherever in the text."""
    text = text[:_MOST_LOOKED_AT]
    if any(form.search(text) for form in (_PEM, _KNOWN, _USERINFO)) or _SCHEME.match(text):
        return True
    try:
        return any(map(_in_url, _URL.findall(text))) or _in_json(text) or _in_pairs(text)
    except RecursionError:  # a URL in a URL in a URL
        return True


def _in_url(url: str) -> bool:
    if len(url) > _LONGEST_URL:
        return True  # nobody types such a one
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.password or (parts.username and looks_random(parts.username)):
        return True
    pairs = [*parse_qsl(parts.query, keep_blank_values=True), *parse_qsl(parts.fragment)]
    return any(is_secret(k, v or k) for k, v in pairs) or any(
        looks_random(unquote(part)) for part in parts.path.split("/")
    )


def _in_json(text: str) -> bool:
    if text.lstrip()[:1] not in {"{", "["}:
        return False
    try:
        return any(is_secret(key, value) for key, value in _strings(json.loads(text), ""))
    except ValueError:
        return False


def _strings(value: Any, key: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for name, each in value.items():
                yield from _strings(each, name)
        case list():
            for each in value:
                yield from _strings(each, key)
        case str():
            yield key, value


def _in_pairs(text: str) -> bool:
    """`Server=db;Password=…`, `TOKEN=… exec server`: what follows a name and an equals sign."""
    return any(
        names_a_secret(match[1]) and is_secret(match[1], match[2] or match[3] or match[4])
        for match in _PAIR.finditer(text)
    )


def _is_random(name: str, value: str) -> bool:
    """Of a value that stands alone: a run without a blank that no person has thought of."""
    if "://" in value or value.startswith("@"):
        return False  # a URL was looked at by its parts, and `@scope/package` is npm's
    if _UUID.fullmatch(value):
        return not name.lower().endswith(("id", "uuid"))
    return any(looks_random(run) for run in _RUN.findall(value[:_MOST_LOOKED_AT]))


def looks_random(run: str) -> bool:
    """Whether it holds a piece of 20 or more letters and digits that reads like dice."""
    return any(_reads_like_dice(piece) for piece in _PIECE.findall(run))


def _reads_like_dice(piece: str) -> bool:
    digits = sum(c.isdigit() for c in piece)
    letters = len(piece) - digits
    if not letters:
        return False
    return digits >= 3 and _bits(piece) >= _LEAST_BITS


def _bits(text: str) -> float:
    """Shannon's entropy of a character, in bits."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values())
