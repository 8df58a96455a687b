"""Values that must not be shown, so that they can be looked for in what is. Blocks (disk, systemd)."""

import base64
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, quote_plus

from autobot_mcp_bridge.units.systemctl import SystemctlError, run_tool

DECRYPT_WITHIN = 5.0
MOST_BYTES = 1 << 20  # as systemd loads of a unit's credentials
MOST_LINES = 500  # of one value that are looked for, each by itself, as in templates/ended.py


def content(path: Path) -> str:
    """What a file of a credential holds; nothing, where it cannot be read."""
    try:
        # O_NONBLOCK: a FIFO in the place of a file must not hang the reader.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def decrypted(path: Path) -> str:
    """By the name of its file, or by none, whichever it was encrypted with; "" where it is not."""
    for name in (path.name, ""):
        words = ("systemd-creds", "decrypt", f"--name={name}", str(path), "-")
        with suppress(SystemctlError):
            return run_tool(*words, timeout=DECRYPT_WITHIN)
    return ""


def forms(texts: Iterable[str]) -> Iterator[str]:
    """Each of them as a text may hold it: whole, by its lines, in JSON, in a URL and in base64."""
    for text in texts:
        whole = text.strip()
        if not whole:
            continue
        yield base64.b64encode(whole.encode()).decode().rstrip("=")
        yield base64.urlsafe_b64encode(whole.encode()).decode().rstrip("=")
        lines = (line.strip() for line in whole.splitlines()[:MOST_LINES])
        for each in dict.fromkeys((whole, *lines)):
            yield each
            yield json.dumps(each)[1:-1]
            yield json.dumps(each, ensure_ascii=False)[1:-1]
            yield quote(each, safe="")
            yield quote_plus(each)
