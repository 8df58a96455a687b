"""Telling that the configuration changed, and reading it while nobody changes it."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from autobot_mcp_bridge.config.load import Loaded, load
from autobot_mcp_bridge.config.places import Places

# A manager that rewrites many files takes moments; what is not quiet by then is read at the
# next poll.
MAX_READS = 10


def fingerprint(places: Places) -> str:
    """A digest over the names, times, sizes and inodes of all files of configuration, tokens and keys.

    Cheap enough for twice a second: it opens no file. Blocks (disk only).
    """
    return mark(
        *(places.host_toml, places.servers_json, places.servers_d),
        *(places.tokens_d, places.keys_d, places.manifests_d),
    )


def mark(*paths: Path) -> str:
    """A digest over files, and over the files in directories, as `fingerprint` says."""
    total = hashlib.sha256()
    for path in paths:
        total.update(b"\0")
        if not path.is_dir():
            total.update(_mark(path).encode())
            continue
        for file in _visible(path):
            total.update(os.fsencode(file.name))
            total.update(_mark(file).encode())
    return total.hexdigest()


def _visible(directory: Path) -> Iterator[Path]:
    try:
        names = sorted(os.listdir(directory))  # noqa: PTH208 - names are what is filtered
    except OSError:
        return
    for name in names:
        if not name.startswith("."):
            yield directory / name


def _mark(path: Path) -> str:
    try:
        status = path.stat()
    except OSError as error:
        return f"[{error.errno}]"
    # ctime too: rsync -t and cp -p set the old mtime on new content, and chmod decides as well.
    times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
    return f"[{times} {status.st_size} {status.st_ino} {status.st_dev}]"


def stable_read(places: Places, *, units: bool) -> tuple[Loaded, str]:
    """Load, until nothing changed while it was read; the fingerprint that belongs to it.

    If it never holds still, the fingerprint is of before the last read, so that the next poll
    sees a change and reads again. Blocks: call it in a thread.
    """
    before = fingerprint(places)
    for _ in range(MAX_READS):
        loaded = load(places, units=units)
        after = fingerprint(places)
        if after == before:
            break
        previous, before = before, after
    else:
        return loaded, previous
    return loaded, before
