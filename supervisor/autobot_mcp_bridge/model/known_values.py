"""Secrets whose values are known, taken out of texts by value. Pure.

What the proxy knows are the variables of the definitions. Credentials it never sees: systemd hands
them to the servers' units alone.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from autobot_mcp_bridge.model.redact import SHORTEST
from autobot_mcp_bridge.model.secret_keys import is_secret_key

_USERINFO = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]+@")


def secret_variables(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that hold a secret, by their name or because of a URL with a user in it.

    Short values and numbers are left out: they would only make holes in texts.
    """
    return {
        name: value
        for name, value in env.items()
        if (is_secret_key(name) or _USERINFO.match(value))
        and len(value) >= SHORTEST
        and not value.isdecimal()
    }


class KnownValues:
    """Replaces each known secret by `<redacted-value:NAME>`.

    Args:
        variables: the secrets by name.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._marks: list[tuple[str, str]] = []
        self.learn((variables or {}).items())

    def learn(self, variables: Iterable[tuple[str, str]]) -> None:
        """Know these names and values, and no others any more."""
        marks = {}
        for name, value in variables:
            for form in _forms(value):
                marks[form] = f"<redacted-value:{name}>"
        # The longest first: one value may be part of another.
        self._marks = sorted(marks.items(), key=lambda item: -len(item[0]))

    def __call__(self, text: str) -> str:
        for value, mark in self._marks:
            if value in text:
                text = text.replace(value, mark)
        return text

    def cut(self, text: str, length: int) -> str:
        """The first characters, and of no known secret a part."""
        end = length
        for value, _ in self._marks:
            at = text.find(value, max(0, end - len(value) + 1), end + len(value) - 1)
            if 0 <= at < end:
                end = at
        return text[:end]


def _forms(value: str) -> Iterator[str]:
    """As it is, and as it stands in a repr or in JSON."""
    yield value
    for written in (repr(value), json.dumps(value), json.dumps(value, ensure_ascii=False)):
        if written[1:-1] != value:
            yield written[1:-1]
