"""What a request at 2026-07-28 repeats in headers: which parameters, and how a header has them.

"Custom Headers" of the 2026-07-28 transports. Pure.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

METHOD_HEADER = "Mcp-Method"
NAME_HEADER = "Mcp-Name"
PARAM_HEADER = "Mcp-Param-"
# Which of params names the thing that a request is about (Mcp-Name).
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Visible ASCII with inner spaces goes as it is; anything else, and what could be taken for the
# encoded form, goes in base64.
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_ENCODED = re.compile(r"=\?base64\?.*\?=", re.IGNORECASE)
# How deep an annotated parameter may lie, and how many of one tool are known: a request has no more
# headers, and each call of 50000 held the loop for 40 ms (measured).
MAX_STEPS = 16
MAX_MIRRORED = 100


@dataclass(frozen=True, slots=True)
class Mirrored:
    """A parameter that a client repeats in a header: `Mcp-Param-` and the name."""

    header: str
    path: tuple[str, ...]

    def find(self, arguments: object) -> object:
        """Its value among a call's arguments; None: it is not there."""
        value: Any = arguments
        for step in self.path:
            value = value.get(step) if isinstance(value, dict) else None
        return value


def mirrored_of(tools: object) -> Iterator[tuple[str, tuple[Mirrored, ...]]]:
    """The annotated tools of one page of tools/list."""
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
            continue
        found = tuple(islice(_annotated(tool.get("inputSchema"), ()), MAX_MIRRORED))
        if found:
            yield name, found


def header_value(text: str) -> str:
    """The text as a header's value, in base64 where it must be."""
    if _PLAIN.fullmatch(text) and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _annotated(schema: object, path: tuple[str, ...]) -> Iterator[Mirrored]:
    """Those that are reachable by `properties` alone; what breaks the rules is no annotation."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or len(path) >= MAX_STEPS:
        return
    for name, inner in properties.items():
        if not isinstance(inner, dict):
            continue
        header = inner.get("x-mcp-header")
        if isinstance(header, str) and _TOKEN.fullmatch(header) and _is_primitive(inner):
            yield Mirrored(header, (*path, name))
        yield from _annotated(inner, (*path, name))


def _is_primitive(schema: dict[str, Any]) -> bool:
    return schema.get("type") in ("string", "integer", "boolean")
