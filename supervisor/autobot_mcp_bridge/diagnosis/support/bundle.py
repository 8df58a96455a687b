"""The archive: files with bounds, and a manifest that says what is in it and what is not."""

import io
import json
import os
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autobot_mcp_bridge.config.errors import DataError
from autobot_mcp_bridge.model.errors import BridgeError

MOST_BYTES = 1 << 20  # of one file; of a longer one the end is kept
MOST_TOGETHER = 32 << 20
MANIFEST = "manifest.json"


@dataclass(slots=True)
class Bundle:
    """Parts, collected one after the other until the deadline.

    Attributes:
        root: the folder that all names begin with.
        deadline: by the monotonic clock.
    """

    root: str
    deadline: float
    files: dict[str, bytes] = field(default_factory=dict)
    entries: list[dict[str, object]] = field(default_factory=list)

    def add(self, name: str, part: Callable[[], str]) -> None:
        """Collect a part; one that fails, or comes too late, is told in the manifest instead."""
        if time.monotonic() > self.deadline:
            self.leave_out(name, "the time was over")
            return
        try:
            data = part().encode("utf-8", "replace")
        except (OSError, ValueError, RecursionError, BridgeError) as error:
            self.leave_out(name, f"{type(error).__name__}: {_reason(error)}")
            return
        cut = max(0, len(data) - MOST_BYTES)
        if sum(map(len, self.files.values())) + len(data) - cut > MOST_TOGETHER:
            self.leave_out(name, f"the bundle has {MOST_TOGETHER >> 20} MiB already")
            return
        self.files[name] = data[cut:]
        entry: dict[str, object] = {"file": name, "bytes": len(data) - cut}
        self.entries.append(entry | ({"cut_from_the_beginning": cut} if cut else {}))

    def leave_out(self, name: str, why: str) -> None:
        self.entries.append({"file": name, "left_out": why})

    @property
    def left_out(self) -> list[str]:
        return [str(entry["file"]) for entry in self.entries if "left_out" in entry]

    def write(self, path: Path, about: dict[str, object]) -> None:
        """Write the archive, for its owner alone.

        Raises:
            DataError: there is such a file already.
        """
        text = json.dumps({**about, "files": self.entries}, indent=1, ensure_ascii=False)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            raise DataError(f"{path}: is there already; name another --output") from None
        with (
            os.fdopen(descriptor, "wb") as file,
            tarfile.open(fileobj=file, mode="w:gz") as archive,
        ):
            for name, data in {MANIFEST: text.encode(), **self.files}.items():
                member = tarfile.TarInfo(f"{self.root}/{name}")
                member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
                archive.addfile(member, io.BytesIO(data))


def _reason(error: Exception) -> str:
    """Without what a file holds: the message of a parser may quote it."""
    if isinstance(error, OSError):
        return str(error.strerror or error)
    return str(error) if isinstance(error, BridgeError) else "not of the form that it should have"
