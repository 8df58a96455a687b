"""Shell globs over names of tools, prompts and resources, compiled once; case counts."""

import re
from collections.abc import Iterable, Mapping
from fnmatch import translate
from functools import lru_cache
from typing import Generic, TypeVar

Value = TypeVar("Value")
_WILD = re.compile(r"\[[^\]]*\]|[*?]")
_OTHER = re.compile(r"[^A-Za-z0-9_]")


class Globs:
    """Some globs, any of which may match."""

    def __init__(self, globs: Iterable[str]) -> None:
        self._match = re.compile("|".join(map(translate, globs)) or r"(?!)").match

    def match(self, name: str) -> bool:
        return self._match(name) is not None


class ByGlob(Generic[Value]):
    """Values by glob: of those that match, the one with most literal characters counts (SM-F14)."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        longest = sorted(values, key=lambda glob: -len(_WILD.sub("", glob)))
        self._values = [(re.compile(translate(glob)).match, glob, values[glob]) for glob in longest]

    def find(self, names: Iterable[str]) -> tuple[str, Value] | None:
        """The glob and its value; `names` are those of one thing."""
        for match, glob, value in self._values:
            if any(map(match, names)):
                return glob, value
        return None


@lru_cache(maxsize=4096)
def scoped_names(module: str, tool: str) -> tuple[str, ...]:
    """What a manifest may call a tool: `MODULE_TOOL`, and as scoped-mcp writes it (SM-26, SM-50)."""
    plain = _OTHER.sub("_", tool)
    if plain[:1].isdigit():
        plain = f"tool_{plain}"
    return tuple(dict.fromkeys((f"{module}_{tool}", f"{module}_{plain}")))


def can_match(glob: str, module: str) -> bool:
    """Tell whether a glob may match any tool of this module: what is before its first wildcard fits."""
    start = _WILD.split(glob, maxsplit=1)[0]
    prefix = f"{module}_"
    return start.startswith(prefix) or (prefix.startswith(start) and start != glob)
