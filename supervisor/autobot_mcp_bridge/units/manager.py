"""Questions to systemd, and its verbs, for commands that may block: one small interface.

`SystemctlManager` asks the program, `units/bindings.py` the bus through pystemd where that is
installed; the same tests hold both.
"""

import shlex
from dataclasses import dataclass
from typing import Protocol

from autobot_mcp_bridge.units.systemctl import (
    SystemctlError,
    SystemctlTimeoutError,
    run_tool,
    systemctl,
)

# Of a start that is not bounded by the unit, and of a stop: TimeoutStopSec= and the records.
JOB_WITHIN = 20.0


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """What systemd says of a unit, in its own words (org.freedesktop.systemd1(5)).

    Attributes:
        fragment: the unit file; "" without one.
        drop_ins: the files that count beside it, in their order.
        system_calls: what SystemCallFilter= lets through; of a list of denied ones empty.
    """

    load: str = ""
    active: str = ""
    sub: str = ""
    result: str = ""
    file_state: str = ""
    fragment: str = ""
    drop_ins: tuple[str, ...] = ()
    system_calls: tuple[str, ...] = ()

    @property
    def masked(self) -> bool:
        return self.load == "masked"


class Manager(Protocol):
    """systemd, as far as doctor needs it; each call blocks, and is bounded by JOB_WITHIN seconds."""

    name: str

    def facts(self, unit: str) -> UnitFacts:
        """What there is to know of a unit, loaded or not.

        Raises:
            SystemctlError: systemd does not answer.
        """
        ...

    def start(self, unit: str) -> None:
        """Start it and wait for its job's end.

        Raises:
            SystemctlError: it did not start.
        """
        ...

    def stop(self, unit: str) -> None:
        """Stop it and wait for its job's end; one that does not run is stopped already.

        Raises:
            SystemctlError: it does not stop.
        """
        ...

    def reset_failed(self, unit: str) -> None:
        """Forget that it has failed; of one that is not loaded nothing is known.

        Raises:
            SystemctlError: systemd does not answer.
        """
        ...


# Property of systemctl show(1) to the attribute that it becomes.
PROPERTIES = {
    "LoadState": "load",
    "ActiveState": "active",
    "SubState": "sub",
    "Result": "result",
    "UnitFileState": "file_state",
    "FragmentPath": "fragment",
}


class SystemctlManager:
    """By `systemctl`, 10 to 20 ms a call."""

    name = "systemctl"

    def facts(self, unit: str) -> UnitFacts:
        wanted = ",".join((*PROPERTIES, "DropInPaths", "SystemCallFilter"))
        shown = run_tool("systemctl", "show", f"--property={wanted}", "--", unit)
        found = dict(line.partition("=")[::2] for line in shown.splitlines())
        calls = found.get("SystemCallFilter", "")
        return UnitFacts(
            **{name: found.get(key, "") for key, name in PROPERTIES.items()},
            drop_ins=tuple(shlex.split(found.get("DropInPaths", ""))),
            system_calls=() if calls.startswith("~") else tuple(calls.split()),
        )

    def start(self, unit: str) -> None:
        systemctl("start", [unit], timeout=JOB_WITHIN)

    def stop(self, unit: str) -> None:
        try:
            systemctl("stop", [unit], timeout=JOB_WITHIN)
        except SystemctlTimeoutError:
            raise
        except SystemctlError:
            if self.facts(unit).active not in {"inactive", "failed"}:
                raise

    def reset_failed(self, unit: str) -> None:
        if self.facts(unit).active == "failed":
            systemctl("reset-failed", [unit], timeout=JOB_WITHIN)
