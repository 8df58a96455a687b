"""Which tools of each server have been accepted, as their server described them then.

One file per server, the proxy's own: it alone writes them, and reads them when it starts.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from autobot_mcp_bridge.config.files import (
    RefusedFileError,
    private_directory,
    read_bounded,
    replace_file,
)

VERSION = 1
# What a file may have: policy/drift/baseline.py keeps less than half of it.
MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Seen:
    """One descriptor of a tool.

    Attributes:
        digest: sha256 of its canonical JSON, in hexadecimal.
        at: when it was accepted, or first seen; seconds since the epoch.
        package: which installed package listed it, `name@version`; None for a program that is none.
        text: its canonical JSON; None where it is too large to be kept.
    """

    digest: str
    at: int
    package: str | None = None
    text: str | None = None


@dataclass(slots=True)
class Baseline:
    """The tools of one server by name.

    Attributes:
        accepted: every descriptor that may be listed and called, the newest last.
        differing: those that the server listed last, and nobody has accepted.
        gone: names of `accepted` that the last whole list did not have.
        whole: a whole list has been seen, so that a name which is not known is new.
        package: which listed them last, as in Seen.
    """

    accepted: dict[str, tuple[Seen, ...]] = field(default_factory=dict)
    differing: dict[str, Seen] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    whole: bool = False
    package: str | None = None

    def copy(self) -> "Baseline":
        return Baseline(
            {**self.accepted}, {**self.differing}, {*self.gone}, self.whole, self.package
        )


class BaselineFiles:
    """The files `<instance>.json` below one directory. Every method blocks (disk)."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, instance: str) -> Path:
        return self._directory / f"{instance}.json"

    def read(self, instance: str) -> Baseline | None:
        """What has been written; None for a server that has never been seen.

        Raises:
            RefusedFileError: the file is no such one. What it holds is kept beside it, in `.broken`.
            OSError: that could not be written.
        """
        path = self.path(instance)
        try:
            data = read_bounded(path, MAX_BYTES)
        except FileNotFoundError:
            return None
        try:
            return _read(orjson.loads(data))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            replace_file(path.with_name(f"{path.name}.broken"), data, 0o600)
            raise RefusedFileError(f"not what the proxy writes: {error}") from None

    def write(self, instance: str, baseline: Baseline) -> None:
        """Replace a server's file at once.

        Raises:
            OSError: it cannot be written; the old one stays.
        """
        mode = private_directory(self._directory)
        replace_file(self.path(instance), orjson.dumps(_written(baseline)), mode)

    def remove(self, instance: str) -> None:
        """Forget a server that is no more."""
        path = self.path(instance)
        for each in (path, path.with_name(f"{path.name}.broken")):
            each.unlink(missing_ok=True)


def _written(baseline: Baseline) -> dict[str, Any]:
    return {
        "version": VERSION,
        "package": baseline.package,
        "whole": baseline.whole,
        "gone": sorted(baseline.gone),
        "accepted": {
            name: [asdict(seen) for seen in every] for name, every in baseline.accepted.items()
        },
        "differing": {name: asdict(seen) for name, seen in baseline.differing.items()},
    }


def _read(document: Any) -> Baseline:
    if document["version"] != VERSION:
        raise ValueError("of another version")
    accepted = {name: tuple(map(_seen, every)) for name, every in document["accepted"].items()}
    if not all(accepted.values()):
        raise ValueError("a tool without a descriptor")
    return Baseline(
        accepted,
        {name: _seen(found) for name, found in document["differing"].items()},
        set(map(str, document["gone"])),
        bool(document["whole"]),
        _text(document["package"]),
    )


def _seen(found: Any) -> Seen:
    digest, at = found["digest"], found["at"]
    if not isinstance(digest, str) or not isinstance(at, int):
        raise TypeError("a digest is a text, and a time is an integer")
    return Seen(digest, at, _text(found["package"]), _text(found["text"]))


def _text(found: Any) -> str | None:
    if found is not None and not isinstance(found, str):
        raise TypeError("a package and a descriptor are texts")
    return found
