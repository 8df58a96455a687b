"""Changing one table of TOML text; every other byte stays.

Only what is needed for an entry: a table `[KEY.NAME]` of its own, with keys that are not dotted.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.connect.change import Append, Change, Path, Set, Unset

# TOML 1.0: multi-line strings, strings, comments, brackets, line ends, all else.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|'
    r"'''.*?'{3,5}|"
    r'"(?:\\.|[^"\\\n])*"|'
    r"'[^'\n]*'|"
    r"#[^\n]*|[\[\]{}\n=]|[^\"'#\[\]{}\n=]+",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A header of a table, or a key with its value.

    Attributes:
        start: where its first line begins.
        end: behind the end of its last line.
        table: the path of the table, in which it stands or which it begins.
        key: the path of its key in the table; empty: it is a header.
        value: where its value stands; of a header, all of it.
        listed: whether it begins one more table of a list (`[[…]]`).
    """

    start: int
    end: int
    table: Path
    key: Path
    value: tuple[int, int]
    listed: bool = False


def parse(text: str) -> dict[str, Any]:
    """The document.

    Raises:
        DataError: it is not understood; the message says where.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # names line and column
        raise DataError(f"not understood: {error}") from error
    except (RecursionError, ValueError) as error:
        raise DataError("not understood: nested too deeply, or a number too long") from error


def fresh(document: dict[str, Any], newline: str = "\n") -> str:
    """A new file's text: tables of tables that hold no further ones."""
    tables = [
        newline.join((f"[{_key(key)}.{_key(name)}]", *_lines(entry))) + newline
        for key, table in document.items()
        for name, entry in table.items()
    ]
    return newline.join(tables)


def edit(text: str, changes: Sequence[Change]) -> str:
    """The text with the changes made.

    Raises:
        DataError: the entry stands there in a form that is not edited.
    """
    for change in changes:
        match change:
            case Set(path=(key, name), value=value):
                text = _append(text, {key: {name: value}})
            case Set(path=(key, name, last), value=value):
                text = _set(text, (key, name), last, value)
            case Unset(path=(key, name, last)):
                text = _unset(text, (key, name), last)
            case Set() | Unset() | Append():
                raise DataError(f"{'.'.join(change.path)} is not edited; change it by hand")
    return text


def _append(text: str, document: dict[str, Any]) -> str:
    newline = _newline(text)
    end = "" if not text or text.endswith("\n") else newline
    return f"{text}{end}{newline if text.strip() else ''}{fresh(document, newline)}"


def _set(text: str, table: Path, key: str, value: Any) -> str:
    header, keys = _entry(text, table)
    written = _value(value)
    for statement in keys:
        if statement.key == (key,):
            start, end = statement.value
            return text[:start] + written + text[end:]
    last = keys[-1] if keys else header
    margin = re.match(r"[ \t]*", text[last.start :])
    newline = _newline(text)
    line = f"{margin[0] if margin else ''}{_key(key)} = {written}{newline}"
    before = text[: last.end]
    return f"{before}{'' if before.endswith(chr(10)) else newline}{line}{text[last.end :]}"


def _unset(text: str, table: Path, key: str) -> str:
    _, keys = _entry(text, table)
    for statement in keys:
        if statement.key == (key,):
            return text[: statement.start] + text[statement.end :]
    return text


def _entry(text: str, table: Path) -> tuple[_Statement, list[_Statement]]:
    """The entry's header, and what stands below it."""
    own = [statement for statement in _statements(text) if statement.table == table]
    headers = [statement for statement in own if not statement.key and not statement.listed]
    if len(headers) != 1:
        clause = f"stands in another form than [{'.'.join(table)}]; change it by hand"
        raise DataError(f"its entry {table[-1]} {clause}")
    return headers[0], [statement for statement in own if statement.key]


def _statements(text: str) -> Iterator[_Statement]:
    """Each statement of a text that tomllib has read."""
    table: Path = ()
    line = place = depth = 0
    code = equals = end = None
    for token in _TOKEN.finditer(text):
        place = token.end()
        word = token[0]
        if word == "\n" and depth == 0:
            if code is not None and end is not None:
                statement = _statement(text, (line, place), (code, end), equals, table)
                table = statement.table
                yield statement
            line, code, equals, end = place, None, None, None
            continue
        if word[0] == "#" or not word.strip():
            continue
        if code is None:
            code = token.start() + len(word) - len(word.lstrip())
        if word == "=" and depth == 0 and equals is None:
            equals = token.start()
        depth += (word in "[{") - (word in "]}")
        end = token.start() + len(word.rstrip())
    if code is not None and end is not None:
        yield _statement(text, (line, len(text)), (code, end), equals, table)


def _statement(
    text: str, lines: tuple[int, int], code: tuple[int, int], equals: int | None, table: Path
) -> _Statement:
    if equals is None:
        words = text[code[0] : code[1]]
        return _Statement(*lines, _path(words), (), code, listed=words.startswith("[["))
    start = equals + 1
    while text[start] in " \t":
        start += 1
    return _Statement(*lines, table, _path(text[code[0] : equals] + "= 0"), (start, code[1]))


def _path(text: str) -> Path:
    """The only path of keys in a text of one statement."""
    keys, value = [], tomllib.loads(text)
    while isinstance(value, dict) and value:
        ((key, value),) = value.items()
        keys.append(key)
        if isinstance(value, list):
            break
    return tuple(keys)


def _lines(entry: dict[str, Any]) -> Iterator[str]:
    return (f"{_key(key)} = {_value(value)}" for key, value in entry.items())


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: str | list[str]) -> str:
    # JSON's strings are TOML's, but for the one control character that JSON leaves as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
