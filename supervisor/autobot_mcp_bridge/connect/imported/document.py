"""One file of a client as plain values: JSON with or without comments, TOML, or YAML.

Which of them it is, the text says, not a name: a client's file comes over stdin, too.
"""

import importlib
import re
from collections.abc import Iterator
from typing import Any

from autobot_mcp_bridge.config.errors import DataError, UnavailableError
from autobot_mcp_bridge.config.problem import json_path
from autobot_mcp_bridge.config.text import MAX_DEPTH, parse_json, parse_toml
from autobot_mcp_bridge.connect.imported.jsonc import plain_json

MOST_BYTES = 8 << 20  # ~/.claude.json holds a history beside its servers
MOST_YAML = 1 << 20  # PyYAML reads some 100 KiB a second where it is not compiled
MOST_VALUES = 200_000  # an alias of YAML makes thousands out of one
# A table's head or a key with its value: what YAML would read as one long text, or not at all.
_SURROGATE = re.compile("[\ud800-\udfff]")
_QUOTED = re.compile(r"[\"'][^\"']{2,}[\"']")
_TOML = re.compile(r"(?m)^[ \t]*(?:\[+[ \t]*[\w\"'.-]+|[\w\"'.-]+[ \t]*=)")


def parse(data: bytes, file: str) -> dict[str, Any]:
    """The document's keys.

    Raises:
        DataError: the text is none of the three, or too much of it; one sentence, no content.
        UnavailableError: it is YAML, and nothing here reads that.
    """
    if len(data) > MOST_BYTES:
        raise DataError(f"{file}: allowed are at most {MOST_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: byte {error.start}: allowed is UTF-8 text") from None
    if not text.strip():
        raise DataError(f"{file}: it is empty")
    value = _value(text, file)
    if not isinstance(value, dict):
        raise DataError(f"{file}: $: allowed is an object with servers")
    _demand_plain(value, file)
    return value


def _value(text: str, file: str) -> Any:
    if text.lstrip().startswith(("{", "[", "//", "/*")) and not _TOML.match(text.lstrip()):
        value, problems = parse_json(plain_json(text).encode(), file)
        if problems:
            raise DataError(str(problems[0]))
        return value
    if _TOML.search(_without_comments(text)):
        table, problems = parse_toml(text.encode(), file)
        if not problems:
            return table
        if not re.search(r"(?m)^[\w\"'-]+:(?:[ \t]|$)", text):
            raise DataError(str(problems[0]))
    return _yaml(text, file)


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


def _yaml(text: str, file: str) -> Any:
    if len(text) > MOST_YAML:
        raise DataError(f"{file}: allowed are at most {MOST_YAML >> 20} MiB of YAML")
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise UnavailableError(
            f"{file}: neither JSON nor TOML; YAML is read where PyYAML is installed: "
            "pip install 'autobot-mcp-bridge[import]', with the pip of this program's environment"
        ) from None
    try:
        return yaml.load(text, Loader=_loader(yaml))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        clause = getattr(error, "problem", None) or "neither JSON, TOML nor YAML"
        raise DataError(f"{file}: {where}{_tame(clause)}") from None
    except RecursionError:
        raise DataError(f"{file}: allowed are at most {MAX_DEPTH} levels of nesting") from None
    except ValueError:  # a date or a number that is none
        raise DataError(f"{file}: not YAML: a value is out of its range") from None


def _tame(clause: str) -> str:
    """The parser's own words, without what they quote of the text if it is more than a character."""
    return re.sub(r"[\"'].{2,}", "…", clause, flags=re.DOTALL) if _QUOTED.search(clause) else clause


def _loader(yaml: Any) -> Any:
    """PyYAML's safe one, which neither takes the last of two equal keys nor knows aliases."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                event = self.peek_event()
                raise yaml.composer.ComposerError(
                    None, None, "an alias is not read; write the value out", event.start_mark
                )
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in node.value:
                if not isinstance(key.value, str):
                    clause = "allowed are texts as keys"
                elif key.value in seen:
                    clause = "the key stands twice in its object"
                else:
                    seen.add(key.value)
                    continue
                raise yaml.constructor.ConstructorError(None, None, clause, key.start_mark)
            return super().construct_mapping(node, deep)

    return Loader


def _demand_plain(value: object, file: str) -> None:
    for count, (loc, found) in enumerate(_walk(value, ())):
        if count >= MOST_VALUES:
            raise DataError(f"{file}: allowed are at most {MOST_VALUES} values")
        if len(loc) > MAX_DEPTH:
            raise DataError(f"{file}: allowed are at most {MAX_DEPTH} levels of nesting")
        texts = list(found) if isinstance(found, dict) else [found]
        if isinstance(found, dict) and not all(isinstance(key, str) for key in texts):
            raise DataError(f"{file}: {json_path(loc)}: allowed are texts as keys")
        if any(isinstance(text, str) and _SURROGATE.search(text) for text in texts):
            raise DataError(f"{file}: half of a surrogate pair is no character")


def _walk(
    value: object, loc: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], object]]:
    yield loc, value
    if len(loc) > MAX_DEPTH:
        return
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _walk(each, (*loc, str(key)))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _walk(each, (*loc, index))
