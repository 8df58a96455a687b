"""A tool as its server describes it, in a form of which there is one: for comparing. Pure."""

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

# Characters of a tool's name that is known by it; 2025-11-25 allows 128 (server/tools).
MAX_NAME = 256


class Described(NamedTuple):
    """A tool of a list.

    Attributes:
        digest: sha256 of `text`, in hexadecimal.
        text: the whole descriptor as JSON, with sorted keys and without blanks.
    """

    name: str
    digest: str
    text: str


def described(tool: Any) -> Described | None:
    """One entry of tools/list; None for what is no tool, or has a name that nobody could keep.

    Every member counts, also those that no revision of the protocol knows: clients show them to
    models, too.
    """
    name = tool.get("name") if isinstance(tool, dict) else None
    if not isinstance(name, str) or len(name) > MAX_NAME:
        return None
    text = orjson.dumps(tool, option=orjson.OPT_SORT_KEYS)
    return Described(name, hashlib.sha256(text).hexdigest(), text.decode())


def tools_of(result: dict[str, Any]) -> Iterator[Described]:
    """The tools of one page of tools/list."""
    tools = result.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if (found := described(tool)) is not None:
            yield found
