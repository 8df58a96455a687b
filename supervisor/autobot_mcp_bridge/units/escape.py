"""Values in the words of unit files: carried byte for byte, or refused with a ValueError.

How systemd reads them: systemd.syntax(7), systemd.service(5) "Command lines", systemd.unit(5)
"Specifiers". An assignment of Environment= that it does not like is lost with a mere warning.
Proved against systemd 252 and 257 by tests/systemd/test_escape.py.
"""

import re

# MAX_ARG_STRLEN of execve(2) is 128 KiB with the NUL at the end.
MOST_STRING = (128 << 10) - 1
# LONG_LINE_MAX of systemd, beyond which a unit does not load.
MOST_LINE = (1 << 20) - 1
# A unit's lines must be what systemd takes for UTF-8: without surrogates and noncharacters. The
# same escaped would make its bus properties unreadable.
_UNCARRIED = re.compile(
    "[\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)
_CONTROL = re.compile("[\x01-\x1f\x7f]")
_UNBOUND = re.compile(r"""[:'"\\]""")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = str.maketrans({'"': '\\"', "\\": "\\\\", "%": "%%"})
_CODED = str.maketrans({chr(n): f"\\x{n:02x}" for n in (*range(1, 32), 127)})


def word(text: str) -> str:
    """A word of ExecStart=, after the `:` that keeps `$` as it is.

    Raises:
        ValueError: it holds what no word can (NUL), or what no unit can, or is too long.
    """
    _carried(text)
    return f'"{text.translate(_QUOTED).translate(_CODED)}"'


def assignment(name: str, value: str) -> str:
    """One NAME=VALUE of Environment=.

    Raises:
        ValueError: as in `word`, or the name is none.
    """
    if not _NAME.fullmatch(name):
        raise ValueError("allowed is a name of letters, digits and _, not beginning with a digit")
    _carried(f"{name}={value}")
    return f'"{name}={value.translate(_QUOTED).translate(_CODED)}"'


def path(text: str, *, optional: bool = False, inside: bool = False) -> str:
    """An entry of a list of paths, such as NoExecPaths=; an optional one may be missing.

    One that is not said to be inside the unit's own root counts for nothing with RootDirectory=.

    Raises:
        ValueError: it is not an absolute, plain path, or holds a control character.
    """
    _plain_path(text)
    return f'"{"-" if optional else ""}{"+" if inside else ""}{text.translate(_QUOTED)}"'


def bound(text: str) -> str:
    """A path of BindPaths=, the same inside as outside.

    Raises:
        ValueError: as in `path`, or it holds a colon, which separates inside from outside, or a
            quote or backslash, which systemd 257 takes away twice.
    """
    if _UNBOUND.search(text):
        raise ValueError("a path with a colon, a quote or a backslash cannot be bound")
    return path(text)


def value(text: str) -> str:
    """A path that is a directive's whole value, such as WorkingDirectory=, which knows no quotes.

    Raises:
        ValueError: as in `path`, or it ends in a blank or a backslash.
    """
    _plain_path(text)
    if text != text.rstrip() or text.endswith("\\"):
        raise ValueError("a path that ends in a blank or a backslash cannot stand in a unit")
    return text.replace("%", "%%")


def _plain_path(text: str) -> None:
    _carried(text)
    if _CONTROL.search(text):
        raise ValueError("a control character cannot stand in a path of a unit")
    parts = text.split("/")
    if parts[0] or "" in parts[1:-1] or {".", ".."} & {*parts}:
        raise ValueError("allowed is an absolute path without //, . and ..")


def _carried(text: str) -> None:
    if "\0" in text:
        raise ValueError("a NUL character ends a string")
    if _UNCARRIED.search(text):
        raise ValueError("a surrogate or noncharacter of Unicode cannot stand in a unit")
    if len(text.encode()) > MOST_STRING:
        raise ValueError(f"allowed are at most {MOST_STRING} bytes in one string (execve(2))")
