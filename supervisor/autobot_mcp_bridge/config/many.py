"""Many servers in one edit: all of them or none, also where the disk or another editor interferes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autobot_mcp_bridge.config import splice
from autobot_mcp_bridge.config.edit import (
    NEW_FILE_MODE,
    edited,
    find,
    make_directories,
    show,
)
from autobot_mcp_bridge.config.errors import DataError, UnavailableError
from autobot_mcp_bridge.config.files import remove_file, replace_file
from autobot_mcp_bridge.config.load import VERSION, load
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.config.sources import Sources
from autobot_mcp_bridge.model.names import DEFAULT_TENANT, ServerId

Definitions = Mapping[ServerId, Mapping[str, Any]]
# No server can be called so, whose own file would have the name.
FILE = "imported_servers.json"


def put(places: Places, added: Definitions, replaced: Definitions, *, seen: str) -> list[Path]:
    """Add servers, all in one file, and replace others where they stand; the files written.

    Args:
        places: of the configuration.
        added: the keys of each, without tenant, project and name.
        replaced: the same of servers that are there.
        seen: the digest of the configuration that both were made from.

    Raises:
        DataError: the configuration would be wrong; nothing was written.
        UnavailableError: somebody has changed it since; nothing was written.
    """
    make_directories(places)
    with edited(places) as sources:
        if sources.digest != seen:
            raise UnavailableError("the configuration has changed meanwhile; nothing was written")
        texts = _texts(places, sources, added, replaced)
        overlay = {file: text.encode() for file, text in texts.items()}
        if problems := load(places, overlay=overlay).problems:
            raise DataError(f"nothing was changed, it would be wrong:\n{show(problems)}")
        _write(overlay, sources)
    return list(overlay)


def _texts(
    places: Places, sources: Sources, added: Definitions, replaced: Definitions
) -> dict[Path, str]:
    texts: dict[Path, str] = {}
    for server, settings in replaced.items():
        entry = find(sources, server)
        if entry is None:
            raise UnavailableError(f"{server} is not there any more; nothing was written")
        text = texts.get(entry.file) or sources.texts[entry.file].decode("utf-8-sig")
        texts[entry.file] = splice.with_server(text, entry.index, _named(server, settings))
    if added:
        file = places.servers_d / FILE
        new = [_named(server, settings) for server, settings in added.items()]
        old = texts.get(file)
        if old is None and file in sources.texts:
            old = sources.texts[file].decode("utf-8-sig")
        try:
            texts[file] = splice.with_servers(old or _EMPTY, new)
        except (ValueError, IndexError):
            raise DataError(f"{file}: it holds no list of servers; nothing was changed") from None
    return texts


_EMPTY = json.dumps({"version": VERSION, "servers": []}, indent=2) + "\n"


def _named(server: ServerId, settings: Mapping[str, Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    if server.tenant != DEFAULT_TENANT:
        named["tenant"] = server.tenant
    if server.project is not None:
        named["project"] = server.project
    return {**named, "name": server.name, **settings}


def _write(overlay: Mapping[Path, bytes], sources: Sources) -> None:
    """Replace the files one after the other; what was replaced is put back if one cannot be."""
    done: list[Path] = []
    try:
        for file, data in overlay.items():
            mode = file.stat().st_mode & 0o777 if file.exists() else NEW_FILE_MODE
            replace_file(file, data, mode)
            done.append(file)
    except OSError:
        for file in reversed(done):
            if file in sources.texts:
                replace_file(file, sources.texts[file], file.stat().st_mode & 0o777)
            else:
                remove_file(file)
        raise
