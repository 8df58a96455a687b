"""Changing one server in the text of a file; every other byte stays as a person laid it out.

Works on text that `parse_json` accepted; positions are characters of that text.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_INDENT = 2
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    end: int


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def members(text: str, start: int) -> Iterator[tuple[str, Span]]:
    """Each key of the object that begins there, and where its value stands."""
    position = _skip(text, start + 1)
    while text[position] != "}":
        key, position = _DECODER.raw_decode(text, position)
        position = _skip(text, _skip(text, position) + 1)  # past the colon
        _, end = _DECODER.raw_decode(text, position)
        yield key, Span(position, end)
        position = _skip(text, end)
        if text[position] == ",":
            position = _skip(text, position + 1)


def elements(text: str, start: int) -> Iterator[Span]:
    """Where each element of the list stands that begins there."""
    position = _skip(text, start + 1)
    while text[position] != "]":
        _, end = _DECODER.raw_decode(text, position)
        yield Span(position, end)
        position = _skip(text, end)
        if text[position] == ",":
            position = _skip(text, position + 1)


def server_spans(text: str) -> list[Span]:
    """Where each server of the file stands."""
    for key, span in members(text, _skip(text, 0)):
        if key == "servers":
            return list(elements(text, span.start))
    return []


def without_server(text: str, index: int) -> str:
    """The text without that server and its comma."""
    spans = server_spans(text)
    if index + 1 < len(spans):
        return text[: spans[index].start] + text[spans[index + 1].start :]
    if index > 0:
        return text[: spans[index - 1].end] + text[spans[index].end :]
    return text[: spans[index].start] + text[spans[index].end :]


def with_key(text: str, index: int, key: str, value: Any) -> str:
    """The text with that key of that server set; a new key is added behind the last one."""
    server = server_spans(text)[index]
    found = list(members(text, server.start))
    written = json.dumps(value)
    for name, span in found:
        if name == key:
            return text[: span.start] + written + text[span.end :]
    end = found[-1][1].end  # a server has a name at least
    return f'{text[:end]}, "{key}": {written}{text[end:]}'


def with_server(text: str, index: int, server: dict[str, Any]) -> str:
    """The text with another server in the place of that one."""
    span = server_spans(text)[index]
    return text[: span.start] + _laid_out(server, _column(text, span.start)) + text[span.end :]


def with_servers(text: str, servers: Sequence[dict[str, Any]]) -> str:
    """The text with further servers behind the last one.

    Raises:
        ValueError: it has no list of servers.
    """
    found = server_spans(text)
    column = _column(text, found[-1].start) if found else _INDENT * 2
    added = [_laid_out(server, column) for server in servers]
    between = f",\n{' ' * column}"
    if found:
        end = found[-1].end
        return text[:end] + between + between.join(added) + text[end:]
    for key, span in members(text, _skip(text, 0)):
        if key == "servers":
            whole = f"[\n{' ' * column}{between.join(added)}\n{' ' * _INDENT}]"
            return text[: span.start] + whole + text[span.end :]
    raise ValueError("no servers in it")


def _column(text: str, position: int) -> int:
    """How far in the line begins that holds the position."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return len(line) - len(line.lstrip(" "))


def _laid_out(server: dict[str, Any], column: int) -> str:
    lines = json.dumps(server, indent=_INDENT, ensure_ascii=False).split("\n")
    return f"\n{' ' * column}".join(lines)
