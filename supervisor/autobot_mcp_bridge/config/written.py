"""Documents that apply writes and others read: one that is not what apply writes is an error."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from autobot_mcp_bridge.config.errors import DataError

MAX_BYTES = 64 << 20  # 10,000 servers of some KiB
T = TypeVar("T")


def read(path: Path, version: int, take: Callable[[Any], T]) -> T | None:
    """What `take` makes of the document; None without a file, or with tmpfiles.d's empty one.

    Args:
        path: of the file.
        version: the document's own, which it names.
        take: raises ValueError, LookupError, TypeError or AttributeError for another document.

    Raises:
        DataError: it is not what apply writes, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    if not text:
        return None
    try:
        if len(text) > MAX_BYTES:
            raise ValueError("too large")
        document = json.loads(text)
        if document["version"] != version:
            raise ValueError("of another version")
        return take(document)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}: not what `mcp-bridge apply` writes: {error}") from None
