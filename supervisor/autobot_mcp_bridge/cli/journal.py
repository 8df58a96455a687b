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
from contextlib import suppress
from pathlib import Path

from autobot_mcp_bridge.model.death import DeathCause
from autobot_mcp_bridge.model.known_values import KnownValues
from autobot_mcp_bridge.model.promises import Promise
from autobot_mcp_bridge.model.redact import Redactor
from autobot_mcp_bridge.policy.audit import say

SOCKET = Path("/run/systemd/journal/socket")
FIELDS = (
    *("MCP_INSTANCE", "MCP_CAUSE", "MCP_ISOLATION"),
    # Of a call's record (policy/audit/say.py).
    *("MCP_TENANT", "MCP_PROJECT", "MCP_EVENT", "MCP_STATUS", "MCP_TOOL", "MCP_SESSION"),
    "MCP_AUDIT_SEQ",
)
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


class Redacting(logging.Formatter):
    """Takes secrets out of every record, a library's and its traceback too (SM-83)."""

    def __init__(self, line: str, known: KnownValues) -> None:
        super().__init__(line)
        self._known = known
        self._redact = Redactor(guess=False)

    def format(self, record: logging.LogRecord) -> str:
        text = None
        with suppress(Exception):  # whatever is wrong with it, it must not be shown raw
            text = super().format(record)
        if text is None:
            return f"{record.levelname} {record.name}: a record that cannot be formatted"
        return self._redact.lines(self._known(text))


def _field(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "replace")
    return b"%s\n%s%s\n" % (name.encode(), struct.pack("<Q", len(data)), data)


def set_up(identifier: str) -> KnownValues:
    """Log to the journal under this name where stderr is its stream, else to stderr as it is.

    Never to stdout. What it returns is left out of every line, once it is told.
    """
    known = KnownValues()
    # A record that cannot be formatted would be printed as it is, with a traceback.
    logging.raiseExceptions = False
    in_journal = is_stderr()
    line = "%(message)s" if in_journal else "%(levelname)s %(message)s"

    def handler(formatter: logging.Formatter) -> logging.Handler:
        made = JournalHandler(identifier) if in_journal else logging.StreamHandler(sys.stderr)
        made.setFormatter(formatter)
        return made

    logging.basicConfig(level=logging.INFO, handlers=[handler(Redacting(line, known))])
    # Its lines are JSON, and redacted when they are made.
    audit = logging.getLogger(say.NAME)
    audit.propagate = False
    audit.addHandler(handler(logging.Formatter("%(message)s")))
    return known


def is_stderr() -> bool:
    """Whether stderr is a stream of the journal ($JOURNAL_STREAM, systemd.exec(5))."""
    device, _, inode = os.environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        status = os.fstat(2)
    except OSError:
        return False
    return (device, inode) == (str(status.st_dev), str(status.st_ino))
