"""Arguments of a call, fit to be kept: by key, by value, by pattern, and within bounds.

The text rules are those of model/redact.py, without its guess that any long word is a secret: a
record of calls has to say which file or document was meant.
"""

import re
from typing import Any

import orjson

from autobot_mcp_bridge.model.known_values import KnownValues
from autobot_mcp_bridge.model.redact import REDACTED, Redactor
from autobot_mcp_bridge.model.secret_keys import is_secret_key

LONGEST = 500  # characters of one text
MAX_NAME = 100  # characters of a key or a tool's name
MAX_NAMES = 1000  # of one server, whose redacted form is kept
MAX_DEPTH = 8
# Values and characters of all of a call's arguments; what is more is counted.
MAX_VALUES = 200
MAX_TEXT = 8000
MAX_NUMBER = 64  # digits
# A text that is cut may end within a secret, which no pattern would know any more.
_LAST_WORD = re.compile(r"[A-Za-z0-9+/=_.~:@-]*\Z")

_redact = Redactor(guess=False).secrets


class ArgumentRedactor:
    """Redacts what a client has sent to one server.

    Args:
        known: the values of that server's secret variables.
    """

    def __init__(self, known: KnownValues) -> None:
        self._known = known
        self._names: dict[str, str] = {}

    def __call__(self, value: Any) -> Any:
        """A copy that can be written as JSON; never raises on what orjson has read."""
        return _Walk(self).value(value, 0)

    def name(self, text: str) -> str:
        """A key, or a tool's name: as a text, but shorter, and most are seen again."""
        shown = self._names.get(text)
        if shown is None:
            shown = self.text(text, MAX_NAME)
            if len(text) <= MAX_NAME:
                if len(self._names) >= MAX_NAMES:
                    self._names.clear()
                self._names[text] = shown
        return shown

    def text(self, text: str, longest: int = LONGEST) -> str:
        """One text, cut to so many characters with the number of its bytes behind."""
        if len(text) <= longest:
            return _redact(self._known(text))
        cut = self._known.cut(text, longest)
        head = _redact(self._known(_LAST_WORD.sub("", cut)))
        return f"{head}…[{len(text.encode(errors='surrogatepass'))} bytes]"


class _Walk:
    """Through one call's arguments, with what it may still take."""

    __slots__ = ("_redact", "_text", "_values")

    def __init__(self, redact: ArgumentRedactor) -> None:
        self._redact = redact
        self._values = MAX_VALUES
        self._text = MAX_TEXT

    def value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._string(value)
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            return value if -(1 << 63) <= value < 1 << 64 else f"[{value.bit_length()} bits]"
        if isinstance(value, dict):
            return self._object(value, depth + 1)
        if isinstance(value, list | tuple):
            return self._array(value, depth + 1)
        if isinstance(value, bytes | bytearray | memoryview):
            return f"[{len(value)} bytes]"
        if isinstance(value, orjson.Fragment) and len(orjson.dumps(value)) <= MAX_NUMBER:
            return value  # a number that no double can hold
        return f"[{type(value).__name__}]"

    def _string(self, text: str) -> str:
        if self._text <= 0:
            return f"…[{len(text.encode(errors='surrogatepass'))} bytes]"
        shown = self._redact.text(text)
        self._text -= len(shown)
        return shown

    def _object(self, value: dict[str, Any], depth: int) -> Any:
        if depth > MAX_DEPTH:
            return f"…[{len(value)} members]"
        found: dict[str, Any] = {}
        for number, (key, each) in enumerate(value.items()):
            if self._spent():
                found["…"] = f"[{len(value) - number} more members]"
                break
            shown = self._redact.name(key)
            self._text -= len(shown)
            secret = is_secret_key(key) and each is not None
            found[shown] = REDACTED if secret else self.value(each, depth)
        return found

    def _array(self, value: list[Any] | tuple[Any, ...], depth: int) -> Any:
        if depth > MAX_DEPTH:
            return f"…[{len(value)} elements]"
        found: list[Any] = []
        for number, each in enumerate(value):
            if self._spent():
                found.append(f"…[{len(value) - number} more elements]")
                break
            found.append(self.value(each, depth))
        return found

    def _spent(self) -> bool:
        self._values -= 1
        return self._values < 0 or self._text <= 0
