"""The proxy's log as structured entries of systemd's journal (systemd.journal-fields(7)).

Each entry has the level and, where a line concerns a server, MCP_INSTANCE and MCP_CAUSE: so that
`journalctl MCP_INSTANCE=NAME` shows a server's own lines and the proxy's about it together.
MCP_ISOLATION is the promise of the sandbox that a line tells of, kept or not.
"""

import logging
import os
import socket
import struct
import sys
from pathlib import Path

from autobot_mcp_bridge.model.death import DeathCause
from autobot_mcp_bridge.model.promises import Promise

SOCKET = Path("/run/systemd/journal/socket")
FIELDS = ("MCP_INSTANCE", "MCP_CAUSE", "MCP_ISOLATION")
# An end by which the sandbox has kept a promise, as a word of model/promises.py.
_KEPT: dict[str, str] = {
    DeathCause.MEMORY: Promise.MEMORY,
    DeathCause.SECCOMP: Promise.SYSCALLS,
}
_PRIORITY = {logging.CRITICAL: 2, logging.ERROR: 3, logging.WARNING: 4, logging.INFO: 6}
# A datagram may be so large (net.core.wmem_max); what is longer is cut.
LONGEST = 64 * 1024


class JournalHandler(logging.Handler):
    """Writes the journal's native protocol (https://systemd.io/JOURNAL_NATIVE_PROTOCOL)."""

    def __init__(self, identifier: str, path: Path = SOCKET) -> None:
        super().__init__()
        self._identifier = identifier
        self._path = os.fspath(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._socket.sendto(self._entry(record), self._path)
        except OSError:  # journald is being restarted, or does not keep up
            print(self.format(record), file=sys.stderr)

    def close(self) -> None:
        self._socket.close()
        super().close()

    def _entry(self, record: logging.LogRecord) -> bytes:
        fields = {
            "MESSAGE": self.format(record)[:LONGEST],
            "PRIORITY": str(_PRIORITY.get(record.levelno, 7)),
            "SYSLOG_IDENTIFIER": self._identifier,
            "LOGGER": record.name,
        }
        fields |= {name: str(value) for name in FIELDS if (value := getattr(record, name, None))}
        if (kept := _KEPT.get(fields.get("MCP_CAUSE", ""))) is not None:
            fields["MCP_ISOLATION"] = kept
        return b"".join(_field(name, value) for name, value in fields.items())


def _field(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "replace")
    return b"%s\n%s%s\n" % (name.encode(), struct.pack("<Q", len(data)), data)


def set_up(identifier: str) -> None:
    """Log to the journal under this name where stderr is its stream, else to stderr as it is."""
    if is_stderr():
        handlers: list[logging.Handler] = [JournalHandler(identifier)]
        logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=handlers)
    else:
        line = "%(levelname)s %(message)s"
        logging.basicConfig(level=logging.INFO, format=line, stream=sys.stderr)


def is_stderr() -> bool:
    """Whether stderr is a stream of the journal ($JOURNAL_STREAM, systemd.exec(5))."""
    device, _, inode = os.environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        status = os.fstat(2)
    except OSError:
        return False
    return (device, inode) == (str(status.st_dev), str(status.st_ino))
