"""Names: instance, unit and D-Bus object path of a unit of ours, each from the other."""

import re
from enum import StrEnum

TEMPLATE = "autobot-mcp-bridge"
PATTERNS = (f"{TEMPLATE}@*.service", f"{TEMPLATE}@*.socket")
UNITS = "/org/freedesktop/systemd1/unit"
_ESCAPED = re.compile(r"_([0-9a-f]{2})")


class Kind(StrEnum):
    SERVICE = "service"
    SOCKET = "socket"


def unit_of(instance: str, kind: Kind = Kind.SERVICE) -> str:
    return f"{TEMPLATE}@{instance}.{kind}"


def escaped(name: str) -> str:
    """Return a unit's name, or an invocation id, as it stands in an object path.

    systemd's bus_label_escape(): what is no ASCII letter or digit, and a digit in front, becomes
    an underscore and two hex digits.
    """
    return "".join(
        char if char.isascii() and char.isalnum() and not (index == 0 and char.isdigit()) else code
        for index, (char, code) in enumerate((c, _code(c)) for c in name)
    )


def _code(char: str) -> str:
    return "".join(f"_{byte:02x}" for byte in char.encode())


PREFIX = f"{UNITS}/{escaped(TEMPLATE + '@')}"


def path_of(unit: str) -> str:
    return f"{UNITS}/{escaped(unit)}"


def unit_at(path: str) -> str:
    """Return the name of the unit at an object path; "" when it is no unit of ours."""
    if not path.startswith(PREFIX):
        return ""
    label = path.removeprefix(f"{UNITS}/")
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), label)
