"""The last words of an ended invocation: a record that its unit's ExecStopPost= leaves.

`/run/mcp-bridge/ended/<invocation>.json`: instance, invocation, result, code, status, oom_kill, the
last lines of stderr, and for a set-up that failed perhaps a detail. The file is root's, but what stands in it a hostile server may have
written: it is bounded, checked, and counts for nothing where it is wrong.
"""

import asyncio
import logging
import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from autobot_mcp_bridge.model.death import Death
from autobot_mcp_bridge.model.unit_result import CODES, EXITED, UnitResult

FOLDER = Path("/run/mcp-bridge/ended")
MOST_BYTES = 4096
MOST_LINES = 50
MOST_DETAIL = 1024  # characters
# It is complete 28 to 49 ms after a SIGKILL (measured); a client waits for its error that long.
WITHIN = 0.3
# Polling: one record per end is a handful of looks at a tmpfs. inotify would need ctypes and a
# descriptor, and a look at the folder as well, for what is there already.
PAUSE = 0.015
_INVOCATION = re.compile(r"[0-9a-f]{32}")
_RESULT = re.compile(r"[a-z-]{1,32}")
_MOST = 1 << 31

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LastWords:
    """A record that was checked.

    Attributes:
        stderr: as the server wrote it, but for the values of its credentials.
        detail: one sentence more, of root's own.
    """

    instance: str
    invocation: str
    how: UnitResult
    stderr: tuple[str, ...] = ()
    detail: str = ""

    def death(
        self, redact: Callable[[str], str], *, began: bool = False, asked: bool = False
    ) -> Death:
        """Return it as a death; `redact` makes each line fit to be shown."""
        words = tuple(redact(line) for line in self.stderr)
        return self.how.death(began=began, asked=asked, last_words=words, detail=self.detail)


async def last_words(
    instance: str, invocation: str, *, folder: Path = FOLDER, within: float = WITHIN
) -> LastWords | None:
    """Return the record of an invocation, or None if there is no good one within the time.

    Raises:
        ValueError: the invocation is not 32 hex digits.
    """
    if not _INVOCATION.fullmatch(invocation):
        raise ValueError(f"{invocation!r} is no invocation id")
    path = folder / f"{invocation}.json"
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    wrong = ""
    while True:
        try:
            return parse(await asyncio.to_thread(_read, path), instance, invocation)
        except FileNotFoundError:
            wrong = ""
        except (OSError, ValueError) as error:
            wrong = str(error)  # perhaps it is not complete yet
        if loop.time() + PAUSE > deadline:
            break
        await asyncio.sleep(PAUSE)
    if wrong:
        log.warning(
            "the last words of %s are of no use: %s",
            instance,
            wrong,
            extra={"MCP_INSTANCE": instance},
        )
    return None


def _read(path: Path) -> bytes:
    # Neither a link nor a pipe, should anything ever put one there.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, MOST_BYTES + 1)
    finally:
        os.close(descriptor)


def parse(raw: bytes, instance: str, invocation: str) -> LastWords:
    """Return the record that these bytes are.

    Raises:
        ValueError: it is too long, no such record, or another invocation's.
    """
    if len(raw) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES} bytes")
    try:
        found = orjson.loads(raw.decode("utf-8", "replace"))
        entries = dict(found.items())
    except (orjson.JSONDecodeError, AttributeError) as error:
        raise ValueError(f"no JSON object: {error}") from None
    for key, expected in (("instance", instance), ("invocation", invocation)):
        if entries.get(key) != expected:
            raise ValueError(f"{key} is not {expected}")
    code = _code(entries.get("code"))
    how = UnitResult(
        _result(entries.get("result")),
        code,
        _status(code, entries.get("status")),
        _number("oom_kill", entries.get("oom_kill") or 0),
    )
    stderr, detail = _lines(entries.get("stderr", [])), _detail(entries.get("detail", ""))
    return LastWords(instance, invocation, how, stderr, detail)


def _result(value: Any) -> str:
    if not isinstance(value, str) or not _RESULT.fullmatch(value):
        raise ValueError("result: a word of systemd is missing")
    return value


def _code(value: Any) -> int:
    """$EXIT_CODE is a word, and empty when there was no process; a number is ExecMainCode."""
    if value in (None, "", 0):
        return 0
    known = CODES.get(value, value) if isinstance(value, str) else value
    if isinstance(known, bool) or known not in CODES.values():
        raise ValueError(f"code: allowed is {', '.join(CODES)}")
    return int(known)


def _status(code: int, value: Any) -> int:
    """$EXIT_STATUS is a number for `exited`, else a signal's name without SIG."""
    if code == 0 or value in (None, ""):
        return 0
    if isinstance(value, str) and code != EXITED and not value.isdecimal():
        try:
            return signal.Signals[f"SIG{value.removeprefix('SIG')}"].value
        except KeyError:
            # RTMIN+3 has a name for systemd but none for Python; nobody needs to know it.
            return 0
    return _number("status", value)


def _number(key: str, value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 12:
        value = int(value)
    if not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError(f"{key}: a number is missing")
    return int(value)


def _detail(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MOST_BYTES:
        raise ValueError("detail: a line is missing")
    # A path in it may hold what a terminal would act on.
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in value)[
        :MOST_DETAIL
    ]


def _lines(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        raise ValueError("stderr: a list of lines is missing")
    return tuple(value[-MOST_LINES:])
