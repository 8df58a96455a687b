"""What `mcp-bridge token` and `mcp-bridge key` have in common."""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from autobot_mcp_bridge.cli.common import note, print_json, print_table
from autobot_mcp_bridge.config.digests import DigestRecord
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.units.apply import Applier


def lay(places: Places, directory: Path) -> None:
    """Have the directory made with its rights: by root alone, the proxy could not read it."""
    if places.accepted.exists() and not directory.is_dir():
        Applier(places, note).lay()


def shown(record: DigestRecord) -> dict[str, object]:
    """What is shown of every record; never its digest."""
    return {
        "id": record.id,
        "created": time_of(record.created),
        "expires": None if record.expires is None else time_of(record.expires),
        "counts": "yes" if record.counts(time.time()) else "no",
    }


def print_records(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """As a table; what is not there is never."""
    cells = [
        [str(row[key]) if row[key] is not None else "never" for key in columns] for row in rows
    ]
    print_table([key.replace("_", " ").upper() for key in columns], cells)


def tell_revoked(ended: Sequence[DigestRecord], word: str, *, as_json: bool) -> None:
    ids = list(dict.fromkeys(record.id for record in ended))
    if as_json:
        print_json({"revoked": ids})
    else:
        note(f"revoked: {', '.join(ids) or f'none, there was no {word}'}")


def time_of(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} seconds after 1970"
