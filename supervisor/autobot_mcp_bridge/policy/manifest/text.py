"""A manifest's text to plain values, YAML or JSON: what is ambiguous or boundless is refused.

Nothing here quotes the content: it may hold a secret (SM-12). The only module that knows PyYAML,
which is imported for the first manifest.
"""

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from autobot_mcp_bridge.config.problem import Loc, Problem, json_path
from autobot_mcp_bridge.config.text import parse_json

# PyYAML reads about 100 KiB a second; a manifest has some.
MAX_BYTES = 256 << 10
# Aliases make few bytes many values: so many values, so deep.
MAX_VALUES = 20_000
MAX_DEPTH = 32
# Only the form with braces, as in scoped-mcp.
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TWICE = "the key stands twice in its mapping"


def parse(data: bytes, file: Path) -> tuple[Any, list[Problem]]:
    """The value, or None and what is wrong. Never raises on bad text."""
    name = str(file)
    if len(data) > MAX_BYTES:
        return None, [Problem(name, "", "", f"allowed are at most {MAX_BYTES >> 10} KiB")]
    if file.suffix == ".json":
        return parse_json(data, name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return None, [Problem(name, f"byte {error.start}", "", "allowed is UTF-8 text")]
    return _parse_yaml(text, name)


def _parse_yaml(text: str, name: str) -> tuple[Any, list[Problem]]:
    try:
        import yaml
    except ImportError:
        why = "PyYAML is not installed here: write it as .json, or install the extra `policy`"
        return None, [Problem(name, "", "", why)]
    loader: Any = None
    try:
        loader = _loader_type()(text)
        value = loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        return None, [Problem(name, where, "", "not YAML, or a tag that is none of JSON's")]
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError):
        return None, [Problem(name, "", "", "not YAML, or nested too deeply")]
    finally:
        if loader is not None:
            loader.dispose()
    twice = [Problem(name, f"line {line}", "", _TWICE) for line in loader.twice]
    return (None if twice else value), twice


@cache
def _loader_type() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Tells keys that stand twice, of which PyYAML takes the last; a date stays text."""

        yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {
            first: [pair for pair in pairs if not pair[0].endswith(":timestamp")]
            for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def __init__(self, stream: str) -> None:
            super().__init__(stream)
            self.twice: list[int] = []

        def flatten_mapping(self, node: Any) -> None:
            seen: set[str] = set()
            for key, _ in node.value:
                if isinstance(key.value, str) and key.value in seen and key.value != "<<":
                    self.twice.append(key.start_mark.line + 1)
                seen.add(str(key.value))
            super().flatten_mapping(node)

    return Loader


class Expansion:
    """`${VAR}` in every scalar, after parsing: no value can change the structure (SM-F8).

    Attributes:
        used: the variables that were named and are there.
        missing: those that are not.
        flaws: places of what no manifest holds.
    """

    def __init__(self, environ: Mapping[str, str] | None) -> None:
        """None: leave the variables as they stand, for who does not know the proxy's environment."""
        self._environ = environ
        self._values = 0
        self.used: set[str] = set()
        self.missing: set[str] = set()
        self.flaws: list[tuple[Loc, str]] = []

    def of(self, value: Any, loc: tuple[str | int, ...] = ()) -> Any:
        """The value with every variable in the place of its name."""
        self._values += 1
        if self._values > MAX_VALUES or len(loc) > MAX_DEPTH:
            if not self.flaws or self.flaws[-1][0] != ():
                self.flaws.append(((), f"allowed are {MAX_VALUES} values, {MAX_DEPTH} levels deep"))
            return None
        match value:
            case str():
                return _VARIABLE.sub(self._value, value)
            case dict():
                return dict(self._members(value, loc))
            case list():
                return [self.of(item, (*loc, index)) for index, item in enumerate(value)]
            case None | bool() | int() | float():
                return value
        self.flaws.append((loc, "allowed are text, numbers, lists and mappings"))
        return None

    def _members(
        self, value: dict[Any, Any], loc: tuple[str | int, ...]
    ) -> Iterator[tuple[str, Any]]:
        for key, member in value.items():
            if self._values > MAX_VALUES:
                return
            if isinstance(key, str):
                yield key, self.of(member, (*loc, key))
            else:
                self.flaws.append((loc, "allowed are keys that are text; put them in quotes"))

    def _value(self, found: re.Match[str]) -> str:
        name = found[1]
        if self._environ is None:
            return found[0]
        if name not in self._environ:
            self.missing.add(name)
            return found[0]
        self.used.add(name)
        return self._environ[name]

    def problems(self, file: str) -> list[Problem]:
        """What is wrong; all missing variables in one, by name."""
        found = [Problem(file, json_path(loc), "", text) for loc, text in self.flaws]
        if self.missing:
            names = ", ".join(sorted(self.missing))
            found.append(Problem(file, "", "", f"variables that the proxy does not have: {names}"))
        return found


def environment() -> Mapping[str, str]:
    """What `${VAR}` is looked up in: the proxy's own environment."""
    return os.environ
