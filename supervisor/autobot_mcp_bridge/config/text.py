"""JSON and TOML text to plain values, stricter than the parsers: what is ambiguous is refused."""

import json
import tomllib
from collections.abc import Iterator
from typing import Any

from autobot_mcp_bridge.config.problem import Loc, Problem, json_path

MAX_DEPTH = 32  # the deepest key of the model is five levels down


class _Object(dict[str, Any]):
    """A JSON object that remembers which of its keys stood twice."""

    twice: tuple[str, ...] = ()


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    result = _Object(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        result.twice = tuple(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return result


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


def parse_json(data: bytes, file: str) -> tuple[Any, list[Problem]]:
    """The value, or None and what is wrong with the text. Never raises on bad text.

    A text whose only mistakes are doubled keys has a value too, so that others in it can be told.
    """
    try:
        value = json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_no_constant
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        return None, [Problem(file, where, "", f"not JSON: {error.msg}")]
    except UnicodeDecodeError as error:
        return None, [Problem(file, f"byte {error.start}", "", "allowed is UTF-8 text")]
    except RecursionError:
        return None, [Problem(file, "$", "", _TOO_DEEP)]
    except ValueError as error:  # NaN, Infinity, a number of thousands of digits
        return None, [Problem(file, "$", "", f"not JSON: {error}")]
    flaws = list(_flaws(value, ()))
    readable = all(text == _TWICE for _, text in flaws)
    problems = [Problem(file, json_path(loc), "", text) for loc, text in flaws]
    return value if readable else None, problems


_TOO_DEEP = f"allowed are at most {MAX_DEPTH} levels of nesting"


def _flaws(value: object, loc: Loc) -> Iterator[tuple[Loc, str]]:
    if len(loc) >= MAX_DEPTH and isinstance(value, dict | list):
        yield loc, _TOO_DEEP
        return
    match value:
        case dict():
            for key in getattr(value, "twice", ()):
                yield (*loc, key), _TWICE
            for key, member in value.items():
                if not _encodable(key):
                    yield (*loc, key), _SURROGATE
                yield from _flaws(member, (*loc, key))
        case list():
            for index, member in enumerate(value):
                yield from _flaws(member, (*loc, index))
        case str() if not _encodable(value):
            yield loc, _SURROGATE
        case _:
            pass


_TWICE = "the key stands twice in its object"
_SURROGATE = "half of a surrogate pair is no character"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def parse_toml(data: bytes, file: str) -> tuple[dict[str, Any], list[Problem]]:
    """The tables, or nothing and what is wrong with the text. Never raises on bad text."""
    try:
        return tomllib.loads(data.decode("utf-8")), []
    except UnicodeDecodeError as error:
        return {}, [Problem(file, f"byte {error.start}", "", "allowed is UTF-8 text")]
    except tomllib.TOMLDecodeError as error:  # names line and column
        return {}, [Problem(file, "", "", f"not TOML: {error}")]
    except (RecursionError, ValueError):
        return {}, [Problem(file, "", "", "not TOML: nested too deeply, or a number too long")]
