"""systemd by its bus, through pystemd where it is installed: the only module that knows it.

It is Debian's python3-pystemd (0.11 in 12, 0.13 in 13), which lies beside the system's Python and
not in the program's venv: both are of the same Python. A question costs 1 to 4 ms.
"""

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from autobot_mcp_bridge.units.manager import JOB_WITHIN, PROPERTIES, Manager, UnitFacts
from autobot_mcp_bridge.units.systemctl import SystemctlError, SystemctlTimeoutError

SYSTEM_PACKAGES = "/usr/lib/python3/dist-packages"
PAUSE = 0.02  # seconds between two looks at a job
_NO_SUCH_UNIT = "NoSuchUnit"


def bus_manager() -> Manager | None:
    """Through pystemd; None where it is not installed, or does not fit this Python."""
    here = SYSTEM_PACKAGES not in sys.path
    if here:
        sys.path.append(SYSTEM_PACKAGES)  # last: nothing of the venv's is replaced
    try:
        library = importlib.import_module("pystemd.dbuslib")
        units = importlib.import_module("pystemd.systemd1")
        errors = importlib.import_module("pystemd.dbusexc")
    except ImportError:
        return None
    finally:
        if here:
            sys.path.remove(SYSTEM_PACKAGES)
    return BusManager(library.DBus, units.Unit, errors.DBusBaseError)


class BusManager:
    """Implements `Manager`; a connection for each call, so that any thread may make it."""

    name = "pystemd"

    def __init__(
        self, bus: Callable[[], Any], unit: Callable[..., Any], error: type[Exception]
    ) -> None:
        self._bus = bus
        self._unit = unit
        self._error = error

    def facts(self, unit: str) -> UnitFacts:
        with self._loaded(unit) as found:
            known = {name: _text(_property(found, key)) for key, name in PROPERTIES.items()}
            drop_ins = tuple(map(_text, _property(found, "DropInPaths") or ()))
            allowed, names = _property(found, "SystemCallFilter") or (False, ())
            calls = tuple(map(_text, names)) if allowed else ()
        return UnitFacts(**known, drop_ins=drop_ins, system_calls=calls)

    def start(self, unit: str) -> None:
        self._run("Start", unit)
        facts = self.facts(unit)
        if facts.active not in {"active", "activating"}:
            raise SystemctlError(f"start of {unit}: it is {facts.active} ({facts.result})")

    def stop(self, unit: str) -> None:
        self._run("Stop", unit)

    def reset_failed(self, unit: str) -> None:
        with self._loaded(unit) as found:
            if _text(_property(found, "ActiveState")) == "failed":
                found.Unit.ResetFailed()

    def _run(self, verb: str, unit: str) -> None:
        """Queue a job and wait until the unit has none."""
        by = time.monotonic() + JOB_WITHIN
        with self._loaded(unit) as found:
            getattr(found.Unit, verb)(b"replace")
            while _property(found, "Job")[0]:
                if time.monotonic() > by:
                    raise SystemctlTimeoutError(f"{verb} of {unit}: not within {JOB_WITHIN:g} s")
                time.sleep(PAUSE)

    @contextmanager
    def _loaded(self, unit: str) -> Iterator[Any]:
        """The unit, which systemd loads for it; what goes wrong becomes a SystemctlError."""
        bus = self._bus()
        try:
            bus.open()
            found = self._unit(unit.encode(), bus=bus)
            found.load()
            yield found
        except self._error as error:
            if _NO_SUCH_UNIT not in type(error).__name__:
                raise SystemctlError(f"{unit}: {error}") from None
        finally:
            bus.close()


def _property(unit: Any, name: str) -> Any:
    """Of whichever interface has it; None: this kind of unit has none."""
    return getattr(unit, name, None)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)
