"""Reading the directives of unit files as systemd does, as far as doctor needs it: pure."""

import re
from collections.abc import Iterable, Iterator

from autobot_mcp_bridge.units.host.static import FILES

# Entries of a list: quoted, or without a blank (systemd.syntax(7)).
_ENTRY = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
_SPECIFIER = re.compile(r"%(.)")
# The recorder of an end, which the drop-in of a server with a root of its own calls, too.
_RECORDS = f"/{FILES['ended.py']} %i"


def values(texts: Iterable[str], directive: str) -> list[str]:
    """Each value of a directive in the texts, in their order; an empty one clears those before."""
    found: list[str] = []
    for line in _lines(texts):
        key, equals, value = line.partition("=")
        if equals and key.strip() == directive:
            found = [*found, value.strip()] if value.strip() else []
    return found


def entries(texts: Iterable[str], directive: str) -> list[str]:
    """Each entry of a directive that is a list, as it is written, quotes and all."""
    return [entry for value in values(texts, directive) for entry in _ENTRY.findall(value)]


def plain(entry: str) -> str:
    """The path that an entry stands for, without quotes and the sign for an optional one."""
    text = entry[1:-1] if entry[:1] == '"' == entry[-1:] else entry
    return re.sub(r"\\(.)", r"\1", text.removeprefix("-").removeprefix("+")).replace("%%", "%")


def _lines(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for line in text.replace("\\\n", " ").splitlines():
            if line.strip() and line.lstrip()[0] not in "#;[":
                yield line


def as_instance(text: str, unit: str, instance: str) -> str:
    """The text for another instance: the specifiers that name the first one are filled in.

    Of systemd.unit(5), "Specifiers", those of the instance and the whole name; all others mean the
    same in each instance of a template. A record of an end is of whoever has ended, though.
    """
    names = {
        "i": instance,
        "I": instance.replace("-", "/"),
        "n": unit,
        "N": unit.rpartition(".")[0],
    }

    def filled(line: str) -> str:
        if line.rstrip().endswith(_RECORDS):
            return line
        return _SPECIFIER.sub(
            lambda match: names.get(match[1], match[0]).replace("\\", "\\\\"), line
        )

    return "".join(map(filled, text.splitlines(keepends=True)))
