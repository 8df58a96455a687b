"""Which files hold the configuration, and their content as plain values."""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.config.files import (
    RefusedFileError,
    read_bounded,
    refuse_open_mode,
)
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.problem import Problem
from autobot_mcp_bridge.config.text import parse_json, parse_toml

MAX_FILES = 10_000  # in servers.d; one per server

# Content instead of what is on the disk, None for a file that is to be gone: how an edit is
# checked before it is made.
Overlay = Mapping[Path, bytes | None]


@dataclass(slots=True)
class Sources:
    """The files of one configuration, each read once.

    Attributes:
        documents: file to its parsed value, in the order in which they count.
        texts: the same files as bytes.
        host: the tables of host.toml.
    """

    documents: dict[Path, Any] = field(default_factory=dict)
    texts: dict[Path, bytes] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """The sha256 of every file's name and content."""
        total = hashlib.sha256()
        for path, text in sorted(self.texts.items()):
            total.update(f"{len(os.fsencode(path))}:{len(text)}:".encode())
            total.update(os.fsencode(path))
            total.update(text)
        return total.hexdigest()


def read_sources(places: Places, overlay: Overlay | None = None) -> Sources:
    """Read every file of the configuration; what is wrong with one is a problem, no exception."""
    overlay = overlay or {}
    sources = Sources()
    for directory in (places.config_dir, places.servers_d):
        _refuse_open_directory(directory, sources.problems)
    host = _read(places.host_toml, overlay, sources)
    if host is not None:
        sources.host, problems = parse_toml(host, str(places.host_toml))
        sources.problems += problems
    for path in (places.servers_json, *_listed(places.servers_d, overlay, sources.problems)):
        text = _read(path, overlay, sources)
        if text is None:
            continue
        document, problems = parse_json(text, str(path))
        sources.problems += problems
        if document is not None:  # else it is no JSON; one with a doubled key is looked through too
            sources.documents[path] = document
    return sources


def server_files(directory: Path) -> list[Path]:
    """The files of servers.d that count: `*.json`, not hidden (as an editor's are), sorted.

    Raises:
        OSError: the directory is there and cannot be listed.
    """
    try:
        names = os.listdir(directory)  # noqa: PTH208 - names are what is filtered
    except FileNotFoundError:
        return []
    return sorted(
        directory / name for name in names if name.endswith(".json") and not name.startswith(".")
    )


def _listed(directory: Path, overlay: Overlay, problems: list[Problem]) -> list[Path]:
    try:
        found = set(server_files(directory))
    except OSError as error:
        problems.append(Problem(str(directory), "", "", f"cannot be listed: {error.strerror}"))
        return []
    if len(found) > MAX_FILES:
        problems.append(Problem(str(directory), "", "", f"allowed are at most {MAX_FILES} files"))
        return []
    return sorted(found | {path for path in overlay if path.parent == directory})


def _read(path: Path, overlay: Overlay, sources: Sources) -> bytes | None:
    try:
        text = overlay[path] if path in overlay else read_bounded(path)
    except FileNotFoundError:
        return None
    except RefusedFileError as error:
        sources.problems.append(Problem(str(path), "", "", str(error)))
        return None
    if text is not None:
        sources.texts[path] = text
    return text


def _refuse_open_directory(directory: Path, problems: list[Problem]) -> None:
    # Who may write the directory may replace every file in it; not so below a sticky one (/tmp).
    try:
        status = directory.stat()
        if not status.st_mode & stat.S_ISVTX:
            refuse_open_mode(directory, status)
    except FileNotFoundError:
        pass
    except OSError as error:
        problems.append(Problem(str(directory), "", "", f"cannot be read: {error.strerror}"))
    except RefusedFileError as error:
        problems.append(Problem(str(directory), "", "", str(error)))
