"""Durations, sizes and shares of a CPU as administrators write them (systemd.syntax(7))."""

import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}
_SIZE = re.compile(r"(\d+)([KMG])?")
_BYTES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, None: 1}
_PERCENT = re.compile(r"(\d{1,5})%")


def parse_duration(value: object) -> float:
    """Read `500ms`, `30s`, `5m`, `1h`, `2d`, or a number of seconds.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        return float(match[1]) * _SECONDS[match[2]]
    raise ValueError("allowed is a number of seconds, or a number with ms, s, m, h or d")


def parse_size(value: object) -> int:
    """Read `512M`, `64K`, `2G`, or a number of bytes; K, M and G are powers of 1024.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and (match := _SIZE.fullmatch(value)):
        return int(match[1]) * _BYTES[match[2]]
    raise ValueError("allowed is a number of bytes, or a number with K, M or G")


def parse_percent(value: object) -> int:
    """Read `150%`: hundredths of one CPU (CPUQuota=, systemd.resource-control(5)).

    Raises:
        ValueError: it is not a percentage.
    """
    if isinstance(value, str) and (match := _PERCENT.fullmatch(value)):
        return int(match[1])
    raise ValueError("allowed is a percentage such as 100%")


def show_duration(seconds: float) -> str:
    """Write seconds the way parse_duration reads them, in the largest unit that fits whole."""
    for unit in ("h", "m", "s"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{int(seconds / _SECONDS[unit])}{unit}"
    return f"{round(seconds * 1000)}ms"


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": r"^\d+(\.\d+)?(ms|s|m|h|d)?$"},
            ]
        }
    ),
]
Size = Annotated[
    int,
    BeforeValidator(parse_size),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": r"^\d+[KMG]?$"},
            ]
        }
    ),
]
Percent = Annotated[
    int,
    BeforeValidator(parse_percent),
    WithJsonSchema({"type": "string", "pattern": r"^\d{1,5}%$"}),
]
