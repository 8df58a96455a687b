"""Taking secrets out of what a bundle holds: by key, by pattern, by value. Pure."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from autobot_mcp_bridge.model.redact import REDACTED, Redactor

# Variables whose values help to find a fault, and are nobody's secret.
HARMLESS = re.compile(
    r"LOG_?LEVEL|DEBUG|NODE_ENV|NODE_OPTIONS|TZ|LANG|LC_[A-Z]+|PATH|HOME|TMPDIR|PYTHON[A-Z]*|"
    r"UV_[A-Z_]*(?:DIR|OFFLINE)|npm_config_(?:cache|offline|update_notifier)|MCP_INSTANCE|XDG_[A-Z_]+"
)
_SECRET_KEY = re.compile(
    r"(?i)token|secret|passw|api[_-]?key|credential|authorization|cookie|\bauth"
)
_NAMED = r"[\w-]*(?:token|secret|passw|api[_-]?key|auth)[\w-]*"
_OPTION = re.compile(rf"(?i)--?{_NAMED}")
_ASSIGNMENT = re.compile(rf"(?i)(?:--?)?{_NAMED}")  # of env(1), too
_PASSWORD = re.compile(r"://[^/\s\"':@]{0,100}:([^/\s\"']{1,200})@")
_HEADER = re.compile(
    r"(?i)((?:proxy-)?authorization|(?:set-)?cookie|x-api-key)([\"']?[ \t]{0,4}[:=][ \t]{0,4})[^\r\n]+"
)
_USERINFO = re.compile(r"://[^/\s\"']{1,200}@")
# A private key over several lines, which a journal puts its own words before.
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY[A-Z ]{0,8}-----\s*$")
_KEY_ENDS = "-----END "
_LAST_WORD = re.compile(r"[A-Za-z0-9+/=_-]+\s*$")
_MOST_KEY = 128  # lines; RSA with 8192 bits has 100
_DIGEST = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{56}\b")
_VARIABLE = re.compile(r"(?m)^(\s*(?:Environment|SetCredential\w*)=).*$")
_ASSIGNED = re.compile(r'"?([A-Za-z_][A-Za-z0-9_]*)=')
_OWN = "MCP_BRIDGE_ENV_"
# Of a digest enough to find its token's row.
_DIGEST_SHOWN = 8


class Scrubber:
    """Makes texts and documents fit to leave the host.

    Args:
        values: secrets that are known, as they stand in a text.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._values = frozenset(values)

    def text(self, text: str) -> str:
        """A text line by line; digests are shortened."""
        text = _HEADER.sub(rf"\1\2{REDACTED}", text)
        text = _USERINFO.sub(f"://{REDACTED}@", text)
        text = _DIGEST.sub(r"\1…", text)
        # Values are many and in few texts: whether one is there at all is asked once, not by line.
        redact = Redactor(value for value in self._values if value in text)
        return "\n".join(map(redact, _without_keys(text.split("\n"))))

    def unit(self, text: str) -> str:
        """A unit file; of variables those that are harmless keep their values."""
        return self.text(_VARIABLE.sub(_scrubbed_variable, text))

    def document(self, raw: str) -> str:
        """A JSON document, written anew.

        Raises:
            ValueError: it is none, so that nobody can say what stands where.
        """
        found = self._strings(scrubbed(json.loads(raw)))
        return json.dumps(found, indent=1, ensure_ascii=False)

    def _strings(self, value: Any) -> Any:
        match value:
            case dict():
                return {key: self._strings(each) for key, each in value.items()}
            case list() if all(isinstance(each, str) for each in value):
                return [self.text(each) for each in _without_keys(value)]
            case list():
                return [self._strings(each) for each in value]
            case str():
                return self.text(value)
        return value


def _without_keys(lines: Iterable[str]) -> Iterator[str]:
    """The lines, of which those within a private key lose their last word."""
    left = 0
    for line in lines:
        if _KEY_ENDS in line:
            left = 0
        shown = _LAST_WORD.sub(REDACTED, line) if left else line
        left = _MOST_KEY if _KEY_BEGINS.search(line) else max(0, left - 1)
        yield shown


def scrubbed(value: Any, key: str = "") -> Any:
    """A part of a configuration without its secrets, by its keys."""
    if isinstance(value, dict):
        if key == "headers":
            return dict.fromkeys(value, REDACTED)
        if key == "credentials":
            return value
        if key == "env":
            return {k: v if HARMLESS.fullmatch(k) else REDACTED for k, v in value.items()}
        return {k: scrubbed(v, k) for k, v in value.items()}
    if isinstance(value, list):
        if key == "tokens_sha256":
            return [f"{str(each)[:_DIGEST_SHOWN]}…" for each in value]
        if key in ("command", "argv"):
            return [*_words(value)]
        return [scrubbed(each, key) for each in value]
    if isinstance(value, str) and _SECRET_KEY.search(key):
        return REDACTED
    return value


def secrets_in(value: Any, key: str = "") -> Iterator[str]:
    """Every text in a configuration that `scrubbed` would take out, to be looked for elsewhere."""
    match value:
        case dict() if key in ("env", "headers"):
            kept = frozenset() if key == "headers" else {k for k in value if HARMLESS.fullmatch(k)}
            yield from (str(v) for k, v in value.items() if k not in kept)
        case dict() if key != "credentials":
            for name, each in value.items():
                yield from secrets_in(each, name)
        case list() if key in ("command", "argv"):
            pairs = zip(value, _words(value), strict=True)
            yield from (_value_of(before) for before, after in pairs if before != after)
            yield from (found for word in value for found in passwords_in(str(word)))
        case list():
            for each in value:
                yield from secrets_in(each, key)
        case str() if key != "tokens_sha256" and _SECRET_KEY.search(key):
            yield value


def passwords_in(text: str) -> list[str]:
    """Those of URLs."""
    return _PASSWORD.findall(text)


def _words(words: Iterable[Any]) -> Iterator[Any]:
    """The words of a command: what follows an option that is named like a secret is one."""
    follows = False
    for word in words:
        name, equals, _ = str(word).partition("=")
        if follows:
            yield REDACTED
        elif equals and _ASSIGNMENT.fullmatch(name):
            yield f"{name}={REDACTED}"
        else:
            yield word
        follows = not follows and _OPTION.fullmatch(str(word)) is not None


def _value_of(word: Any) -> str:
    name, equals, value = str(word).partition("=")
    return value if equals and _ASSIGNMENT.fullmatch(name) else str(word)


def _scrubbed_variable(match: re.Match[str]) -> str:
    names = [name.removeprefix(_OWN) for name in _ASSIGNED.findall(match[0].partition("=")[2])]
    harmless = names and all(HARMLESS.fullmatch(name) for name in names)
    return match[0] if harmless else f"{match[1]}{' '.join(f'{n}={REDACTED}' for n in names)}"
