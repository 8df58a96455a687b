"""Changing JSON text, which may have comments and trailing commas; every other byte stays.

Comments and trailing commas are blanked for the parser, so that a place in what it reads is the
same place in the text.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.config.splice import Span, elements, members
from autobot_mcp_bridge.connect.change import Append, Change, Path, Set, Unset

_STRING = r'"(?:[^"\\\r\n]|\\.)*"'
_COMMENTS = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_COMMAS = re.compile(rf"{_STRING}|(?<=[^\s,\[{{:])(\s*),(?=\s*[\]}}])")
_NOT_LINE_END = re.compile(r"[^\r\n]")
# What stands behind a member on its line: a comment of it.
_BEHIND = re.compile(r"(?:[ \t]|/\*(?:(?!\*/)[^\r\n])*\*/)*(?://[^\r\n]*)?(?=[\r\n])")
_SPACE = re.compile(r"\s*")
_MARGIN = re.compile(r"[ \t]*")
_INDENTED = re.compile(r"\n([ \t]+)\S")
_USUAL_UNIT = "  "


def parse(text: str) -> dict[str, Any]:
    """The document.

    Raises:
        DataError: it is not understood; the message says where.
    """
    try:
        document = json.loads(_plain(_bare(text)), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise DataError(f"not understood: {where}: {error.msg}") from error
    except RecursionError as error:
        raise DataError("not understood: it is nested too deeply") from error
    except ValueError as error:  # NaN, a number of thousands of digits
        raise DataError(f"not understood: {error}") from error
    if not isinstance(document, dict):
        raise DataError("not understood: allowed is an object")
    return document


def edit(text: str, changes: Sequence[Change]) -> str:
    """The text with the changes made.

    Raises:
        DataError: a key on the way stands twice, so that nobody knows which one counts.
    """
    for change in changes:
        match change:
            case Set():
                text = _set(_Text.of(text), change.path, change.value)
            case Unset():
                text = _unset(_Text.of(text), change.path)
            case Append():
                text = _append(_Text.of(text), change.path, change.value)
    return text


def fresh(document: dict[str, Any], newline: str = "\n") -> str:
    """A new file's text."""
    return json.dumps(document, indent=2, ensure_ascii=False).replace("\n", newline) + newline


@dataclass(frozen=True, slots=True)
class _Text:
    """A text three times, with the same places: as it is, without comments, as plain JSON."""

    text: str
    bare: str
    plain: str

    @classmethod
    def of(cls, text: str) -> "_Text":
        bare = _bare(text)
        return cls(text, bare, _plain(bare))

    @property
    def root(self) -> Span:
        return Span(_skip(self.plain, 0), len(self.plain.rstrip()))

    @property
    def newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def children(self, span: Span) -> list[Span]:
        """Each member with its key, or each element."""
        if self.plain[span.start] == "[":
            return list(elements(self.plain, span.start))
        starts, at = [], span.start + 1
        values = [value for _, value in members(self.plain, span.start)]
        for value in values:
            starts.append(_skip(self.plain, at))
            at = value.end
            comma = _skip(self.plain, at)
            at = comma + (self.plain[comma] == ",")
        return [Span(start, value.end) for start, value in zip(starts, values, strict=True)]

    def values(self, span: Span, path: Path) -> tuple[int, Span] | None:
        """Which child the last key of the path is, and its value; None: there is none."""
        found = [
            (number, value)
            for number, (key, value) in enumerate(members(self.plain, span.start))
            if key == path[-1]
        ]
        if len(found) > 1:
            raise DataError(f"not understood: {'.'.join(path)} stands twice")
        return found[0] if found else None

    def margin(self, place: int) -> str:
        """The white space at the begin of the line."""
        line = self.text.rfind("\n", 0, place) + 1
        match = _MARGIN.match(self.text, line, place)
        return match[0] if match else ""

    @property
    def unit(self) -> str:
        match = _INDENTED.search(self.text)
        return match[1] if match else _USUAL_UNIT

    def rendered(self, value: Any, margin: str, *, spread: bool) -> str:
        if not spread:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, indent=self.unit, ensure_ascii=False)
        return lines.replace("\n", self.newline + margin)

    def comma_behind(self, end: int) -> int | None:
        at = _skip(self.bare, end)
        return at if self.bare[at] == "," else None


def _set(text: _Text, path: Path, value: Any) -> str:
    span = text.root
    for depth in range(len(path)):
        found = text.values(span, path[: depth + 1])
        if found is None:
            for key in reversed(path[depth + 1 :]):
                value = {key: value}
            return _insert(text, span, value, key=path[depth])
        span = found[1]
    spread = "\n" in text.text
    written = text.rendered(value, text.margin(span.start), spread=spread)
    return text.text[: span.start] + written + text.text[span.end :]


def _append(text: _Text, path: Path, value: Any) -> str:
    span = text.root
    for depth in range(len(path)):
        found = text.values(span, path[: depth + 1])
        if found is None:
            raise DataError(f"not understood: there is no {'.'.join(path)}")
        span = found[1]
    return _insert(text, span, value)


def _insert(text: _Text, span: Span, value: Any, key: str | None = None) -> str:
    """The text with one more child at the end of the object or list, laid out as its others are."""
    whole = text.text
    children = text.children(span)
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    outer = text.margin(span.start)
    if not children:
        inner = whole[span.start + 1 : span.end - 1]
        if "\n" not in whole and span != text.root:
            new = name + text.rendered(value, "", spread=False)
            return whole[: span.end - 1] + new + whole[span.end - 1 :]
        margin = outer + text.unit
        new = name + text.rendered(value, margin, spread=True)
        kept = inner if inner.strip() else ""
        lines = f"{kept}{text.newline}{margin}{new}{text.newline}{outer}"
        return whole[: span.start + 1] + lines + whole[span.end - 1 :]
    last = children[-1].end
    comma = text.comma_behind(last)
    head, tail = (
        (whole[:last] + ",", whole[last:])
        if comma is None
        else (whole[: comma + 1], whole[comma + 1 :])
    )
    close = "" if comma is None else ","
    first = children[0].start
    if "\n" not in whole[span.start : first]:
        return f"{head} {name}{text.rendered(value, '', spread=False)}{close}{tail}"
    margin = text.margin(first)
    if behind := _BEHIND.match(tail):
        head, tail = head + behind[0], tail[behind.end() :]
    new = name + text.rendered(value, margin, spread=True)
    return f"{head}{text.newline}{margin}{new}{close}{tail}"


def _unset(text: _Text, path: Path) -> str:
    span = text.root
    for depth in range(len(path) - 1):
        found = text.values(span, path[: depth + 1])
        if found is None:
            return text.text
        span = found[1]
    found = text.values(span, path)
    if found is None:
        return text.text
    whole, number, children = text.text, found[0], text.children(span)
    start, end = children[number].start, children[number].end
    comma = text.comma_behind(end)
    if comma is not None:
        return whole[:start] + whole[_skip(whole, comma + 1) :]
    if number == 0:
        return whole[:start] + whole[end:]
    before = text.comma_behind(children[number - 1].end)
    if before is None:  # there is one: the text has been parsed
        return whole
    between = whole[before + 1 : start]
    kept = between.rstrip(" \t") if between.strip() else ""  # a comment; its line's end, too
    return whole[:before] + kept + whole[end:]


def _bare(text: str) -> str:
    return _COMMENTS.sub(lambda m: m[0] if m[0][0] == '"' else _NOT_LINE_END.sub(" ", m[0]), text)


def _plain(bare: str) -> str:
    return _COMMAS.sub(lambda m: m[0] if m[0][0] == '"' else m[1] + " ", bare)


def _skip(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")
