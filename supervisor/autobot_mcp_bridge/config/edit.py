"""The edits that commands make: one file at a time, the whole configuration checked before."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.config import splice
from autobot_mcp_bridge.config.errors import DataError, DeniedError, MissingError
from autobot_mcp_bridge.config.files import locked, remove_file, replace_file
from autobot_mcp_bridge.config.load import VERSION, Entry, entries, load
from autobot_mcp_bridge.config.merge import merge
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.problem import Problem
from autobot_mcp_bridge.config.sources import Sources, read_sources
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.model.names import DEFAULT_TENANT, ServerId

NEW_FILE_MODE = 0o644  # no secret stands in it; the proxy need not be its owner
SHOWN_PROBLEMS = 20
NO_SERVERS = b'{"version": 1, "servers": []}\n'


@dataclass(frozen=True, slots=True)
class Edited:
    """What an edit did.

    Attributes:
        file: the file that was written or removed; the one that says it where nothing had to be.
        changed: whether it was.
    """

    file: Path
    changed: bool


def add(places: Places, server: ServerId, settings: Mapping[str, Any]) -> Edited:
    """Add a server, in a file of its own.

    Args:
        places: of the configuration.
        server: which one.
        settings: its keys, without tenant, project and name.

    Raises:
        UsageError: there is such a server.
        DataError: the configuration would be wrong; nothing was written.
    """
    make_directories(places)
    file = places.servers_d / f"{server.instance}.json"
    with edited(places) as sources:
        if entry := find(sources, server):
            raise UsageError(f"{server} stands in {entry.file}; remove it first")
        if file.exists():
            raise UsageError(f"{file} exists and holds another server; add it there by hand")
        named: dict[str, Any] = {}
        if server.tenant != DEFAULT_TENANT:
            named["tenant"] = server.tenant
        if server.project is not None:
            named["project"] = server.project
        document = {
            "version": VERSION,
            "servers": [{**named, "name": server.name, **settings}],
        }
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        _write(places, file, text.encode(), served=server)
    return Edited(file, changed=True)


def remove(places: Places, server: ServerId) -> Edited:
    """Remove a server from whichever file it stands in.

    Raises:
        MissingError: there is no such server.
        DataError: the configuration would be wrong; nothing was written.
    """
    with edited(places) as sources:
        entry = _found(sources, server)
        document = sources.documents[entry.file]
        own = entry.file.parent == places.servers_d and len(document["servers"]) == 1
        if own:
            if len(sources.documents) == 1:
                # A configuration without any file is taken for lost, and stays in force.
                _write(places, places.servers_json, NO_SERVERS)
            _write(places, entry.file, None)
        else:
            _splice(places, sources, entry, lambda text: splice.without_server(text, entry.index))
    return Edited(entry.file, changed=True)


def enable(places: Places, server: ServerId, *, enabled: bool) -> Edited:
    """Set whether a server is served, in whichever file it stands.

    Raises:
        MissingError: there is no such server.
        DataError: the configuration would be wrong; nothing was written.
    """
    with edited(places) as sources:
        entry = _found(sources, server)
        if merge(entry.defaults, entry.raw).get("enabled", True) is enabled:
            return Edited(entry.file, changed=False)
        change = lambda text: splice.with_key(text, entry.index, "enabled", enabled)  # noqa: E731
        _splice(places, sources, entry, change, served=server if enabled else None)
    return Edited(entry.file, changed=True)


def find(sources: Sources, server: ServerId) -> Entry | None:
    """The server's entry, by its whole name, also in a file that has other mistakes."""
    wanted = (server.tenant, server.project, server.name)
    for entry in entries(sources, []):
        merged = merge(entry.defaults, entry.raw)
        found = merged.get("tenant", DEFAULT_TENANT), merged.get("project"), merged.get("name")
        if found == wanted:
            return entry
    return None


def names(sources: Sources) -> list[str]:
    """The instance name of every server in the files, wrong ones left out."""
    found = []
    for entry in entries(sources, []):
        merged = merge(entry.defaults, entry.raw)
        try:
            server = ServerId(
                merged.get("tenant", DEFAULT_TENANT), merged.get("project"), merged.get("name", "")
            )
        except (TypeError, ValueError):
            continue
        found.append(server.instance)
    return found


def _found(sources: Sources, server: ServerId) -> Entry:
    entry = find(sources, server)
    if entry is None:
        raise MissingError(no_such_server(server.instance, names(sources)))
    return entry


def no_such_server(instance: str, known: list[str]) -> str:
    if not known:
        return f"there is no server {instance}; none is configured"
    return f"there is no server {instance}; there are {', '.join(sorted(known))}"


def make_directories(places: Places) -> None:
    """Make the directories of the configuration, readable by all."""
    # The mode is given, so that a group's umask does not make what root then refuses to read.
    try:
        places.config_dir.parent.mkdir(parents=True, exist_ok=True)
        places.config_dir.mkdir(mode=0o755, exist_ok=True)
        places.servers_d.mkdir(mode=0o755, exist_ok=True)
    except PermissionError as error:
        raise DeniedError(f"{error.filename}: {error.strerror}") from error


@contextmanager
def edited(places: Places) -> Iterator[Sources]:
    """The configuration as it is, while nobody else edits it.

    Raises:
        MissingError, DeniedError, UnavailableError: it cannot be had.
    """
    if not places.config_dir.is_dir():
        raise MissingError(f"{places.config_dir}: no such directory")
    try:
        with locked(places.config_dir):
            yield read_sources(places)
    except PermissionError as error:
        raise DeniedError(f"{error.filename or places.config_dir}: {error.strerror}") from error


def _splice(
    places: Places,
    sources: Sources,
    entry: Entry,
    change: Callable[[str], str],
    served: ServerId | None = None,
) -> None:
    text = sources.texts[entry.file].decode("utf-8-sig")
    _write(places, entry.file, change(text).encode(), served)


def _write(places: Places, file: Path, data: bytes | None, served: ServerId | None = None) -> None:
    """Check the whole configuration as it would be, then replace (None: remove) the file.

    Of the server that is to be served from now on also what this host must have for it.
    """
    loaded = load(places, overlay={file: data})
    problems = loaded.problems
    if served is not None:
        problems += loaded.lacking.get(served.instance, ())
    if problems:
        raise DataError(f"nothing was changed, it would be wrong:\n{show(problems)}")
    if data is None:
        remove_file(file)
        return
    mode = file.stat().st_mode & 0o777 if file.exists() else NEW_FILE_MODE
    replace_file(file, data, mode=mode)


def show(problems: tuple[Problem, ...]) -> str:
    """The problems for people, a line each, the first SHOWN_PROBLEMS of them."""
    lines = [str(problem) for problem in problems[:SHOWN_PROBLEMS]]
    if len(problems) > SHOWN_PROBLEMS:
        lines.append(f"… and {len(problems) - SHOWN_PROBLEMS} more; `mcp-bridge check` shows all")
    return "\n".join(lines)
