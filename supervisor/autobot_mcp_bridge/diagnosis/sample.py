"""A diagnostic instance: the server's unit once more, under a name of its own, for one try.

Its drop-ins lie below /run/systemd/system. systemd sees a new folder there when it loads the new
unit (252 and 257, measured), so nothing is reloaded and no other unit notices. The folder is
locked (flock(2)) while its doctor lives: what a killed one has left is removed by the next. Its
process ends by itself, whatever has become of its doctor: nothing runs relaxed for longer than a try.
"""

import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from autobot_mcp_bridge.diagnosis.original import Original
from autobot_mcp_bridge.supervision.ended import FOLDER
from autobot_mcp_bridge.units.instances import folder_of, service_of, socket_of, way_out_of
from autobot_mcp_bridge.units.manager import Manager
from autobot_mcp_bridge.units.sandbox.names import has_names
from autobot_mcp_bridge.units.systemctl import SystemctlError, daemon_reload

PREFIX = "doctor-"
UNITS = Path("/run/systemd/system")
SOCKETS = Path("/run/mcp-bridge")
LAST = "zz-doctor.conf"  # after an administrator's 90-*.conf
# A server that passes over the end of its stdin is not waited for.
_OWN = "[Service]\nTimeoutStopSec=2s\nRuntimeMaxSec={:.0f}s\n"
_ENDED = frozenset({"inactive", "failed"})
# Seconds that a draft of a folder takes at most to be locked and named.
_DRAFT = 60.0
_INSTANCE = re.compile(rf"\.?autobot-mcp-bridge@({PREFIX}[0-9a-f]{{12}})\.service\.d")


@dataclass(frozen=True, slots=True)
class Sample:
    """An instance that listens; a connection starts its service."""

    instance: str

    @property
    def socket(self) -> Path:
        return SOCKETS / f"{self.instance}.sock"


@contextmanager
def sample(
    original: Original, lines: Iterable[str], manager: Manager, seconds: float
) -> Iterator[Sample]:
    """Make one whose last drop-in has these lines, and remove it whatever happens; blocks.

    Each process of it has so many seconds.

    Raises:
        SystemctlError: systemd refused.
    """
    made = Sample(f"{PREFIX}{secrets.token_hex(6)}")
    opened = _opened(original, manager)
    folder = folder_of(UNITS, made.instance)
    draft = folder.with_name(f".{folder.name}")
    draft.mkdir(parents=True, mode=0o755)
    lock = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        texts = {**original.own, LAST: "\n".join((_OWN.format(seconds), *lines, ""))}
        for name, text in texts.items():
            (draft / name).write_text(text, encoding="utf-8")
            (draft / name).chmod(0o644)
        draft.rename(folder)  # whoever sees it sees it locked
        if not manager.facts(service_of(made.instance)).drop_ins:
            daemon_reload()  # another folder was made in the same tick of the clock
        manager.start(socket_of(made.instance))
        yield made
    finally:
        try:
            remove(made.instance, manager)
            if manager.facts(service_of(original.spec.instance)).active in _ENDED:
                for unit in opened:
                    manager.stop(unit)
        finally:
            os.close(lock)


def _opened(original: Original, manager: Manager) -> list[str]:
    """The way out that a try opens and the server itself has not: its namespace, its /tmp."""
    if not has_names(original.spec):
        return []
    unit = way_out_of(original.spec.instance)
    return [unit] if manager.facts(unit).active in _ENDED else []


def remove(instance: str, manager: Manager) -> None:
    """Take away everything of a diagnostic instance; blocks, bounded, idempotent.

    Raises:
        SystemctlError: it does not stop; the next doctor tries again.
    """
    # The socket first: a service alone would be started again by whoever still waits there.
    units = (socket_of(instance), service_of(instance))
    _stop(units, manager)
    for unit in units:
        with suppress(SystemctlError):
            manager.reset_failed(unit)
    folder = folder_of(UNITS, instance)
    for path in (folder, folder.with_name(f".{folder.name}")):
        shutil.rmtree(path, ignore_errors=True)
    records = FOLDER / ".of" / instance
    with suppress(OSError):
        for path in records.iterdir():
            (FOLDER / f"{path.name.split('.')[1]}.json").unlink(missing_ok=True)
    shutil.rmtree(records, ignore_errors=True)


def _stop(units: Iterable[str], manager: Manager) -> None:
    """Stop them, again if need be: a signal to a whole group or cgroup ends systemctl as well."""
    for last in (False, False, True):
        try:
            for unit in units:
                manager.stop(unit)
            if all(manager.facts(unit).active in _ENDED for unit in units):
                return
        except SystemctlError:
            if last:
                raise


def _is_ours(folder: Path) -> bool:
    """Whether a doctor made it; a draft that is being made just now is left to its doctor."""
    if not folder.name.startswith("."):
        return (folder / LAST).exists()
    try:
        return time.time() - folder.stat().st_mtime > _DRAFT
    except OSError:
        return False


def sweep(manager: Manager) -> list[str]:
    """Remove what dead doctors have left; the instances that were. Blocks.

    A server may be called so, and an administrator may have given it a folder here.
    """
    found = []
    for folder in UNITS.glob(f"*autobot-mcp-bridge@{PREFIX}*"):
        match = _INSTANCE.fullmatch(folder.name)
        if match is None or not _is_ours(folder):
            continue
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue  # just removed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(match[1], manager)
            found.append(match[1])
        except (BlockingIOError, SystemctlError):
            continue  # its doctor is at work, or it does not stop
        finally:
            os.close(lock)
    return found
