"""Which lines somebody wants to see, and how a person reads one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from autobot_mcp_bridge.model.quantities import parse_duration


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a line must say.

    Attributes:
        fields: by field; `server` is also met by the whole instance name.
        since: RFC 3339 in UTC, as the lines have it; those before it are left out.
        until: the same; those from it on are left out.
    """

    fields: Mapping[str, str]
    since: str = ""
    until: str = ""

    def is_met(self, record: Mapping[str, Any]) -> bool:
        stamp = str(record.get("timestamp", ""))
        if (self.since and stamp < self.since) or (self.until and stamp >= self.until):
            return False
        return all(_says(record, name, text) for name, text in self.fields.items())


def _says(record: Mapping[str, Any], name: str, text: str) -> bool:
    match name:
        case "server":
            return text in (record.get("server"), record.get("instance"))
        case "principal":
            return bool(text) and str(record.get("principal") or "").startswith(text)
        case _:
            return record.get(name) == text


def point_in_time(text: str, now: datetime) -> str:
    """`2026-11-30`, `2026-11-30T12:00:00Z` or how long ago (`2h`), as the lines have it.

    A time without a zone is UTC, as theirs are.

    Raises:
        ValueError: it is neither.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = now - timedelta(seconds=parse_duration(text))
        except (ValueError, OverflowError):
            raise ValueError(
                "allowed is a date, a time such as 2026-11-30T12:00:00Z, or how long ago (2h)"
            ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def row(record: Mapping[str, Any]) -> list[str]:
    """One line for a person: time, status, instance, what was called, by whom, how it ended."""
    what = record.get("tool") or record.get("method") or record.get("event") or "-"
    took = record.get("elapsed_ms")
    rest = [str(record[name]) for name in ("error", "message") if record.get(name)]
    if record.get("status") is None:  # of no call
        named = ("unrecorded", "missing", "torn", "count")
        rest = [f"{name} {record[name]}" for name in named if record.get(name)]
    return [
        str(record.get("timestamp", "-")),
        str(record.get("status") or record.get("level") or "-"),
        str(record.get("instance") or "-"),
        str(what),
        str(record.get("principal") or "-"),
        f"{took:.1f} ms" if isinstance(took, int | float) else "-",
        ": ".join(rest),
    ]
