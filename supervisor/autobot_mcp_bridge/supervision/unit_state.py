"""What systemd says of a unit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

# org.freedesktop.systemd1(5)
UNIT = "org.freedesktop.systemd1.Unit"
REST = frozenset({"inactive", "failed"})
# Restart= is no part of our units; an administrator's drop-in may set it. Between two processes
# such a unit is `activating`: the first one has ended all the same (252 and 257, measured).
_BETWEEN = frozenset({"auto-restart", "auto-restart-queued", "failed-before-auto-restart"})
_TEXTS = {
    "ActiveState": "active",
    "SubState": "sub",
    "Result": "result",
    "LoadState": "load_state",
    "UnitFileState": "file_state",
}
_NUMBERS = {"ExecMainCode": "main_code", "ExecMainStatus": "main_status"}


@dataclass(frozen=True, slots=True)
class UnitState:
    """The properties of a service or socket that count here, named as in systemctl show.

    Attributes:
        active: ActiveState, such as `active`, `failed`.
        sub: SubState, such as `running`, `stop-post`.
        result: Result: why it ended, such as `success`, `exit-code`, `oom-kill`.
        invocation: InvocationID in hex; "" before the first start, and for sockets.
        main_code: ExecMainCode, 1 exited, 2 killed, 3 dumped core; 0 while it runs.
        main_status: ExecMainStatus, the exit status or the signal's number.
        job: the id of its job, 0 without one.
        load_state: `loaded`, `masked`, `not-found`, `bad-setting`, `error`.
        file_state: UnitFileState, such as `enabled`, `disabled`, `static`, `masked`; "" unknown.
    """

    active: str = "inactive"
    sub: str = "dead"
    result: str = "success"
    invocation: str = ""
    main_code: int = 0
    main_status: int = 0
    job: int = 0
    load_state: str = "loaded"
    file_state: str = ""

    @property
    def at_rest(self) -> bool:
        return self.active in REST or self.sub in _BETWEEN

    @property
    def over(self) -> bool:
        """Whether the invocation has ended.

        A start is signalled with its new invocation while the unit is still `inactive` or `failed`,
        results cleared (252 and 257, measured).
        """
        begins = self.job != 0 and self.main_code == 0 and self.result == "success"
        return self.at_rest and not begins

    @property
    def masked(self) -> bool:
        return self.load_state == "masked"

    def merged(self, properties: Mapping[str, Any]) -> Self:
        """Return it with what a signal or an answer holds; other properties are passed over."""
        found: dict[str, Any] = {
            name: str(properties[key]) for key, name in _TEXTS.items() if key in properties
        }
        found |= {name: int(properties[key]) for key, name in _NUMBERS.items() if key in properties}
        if "InvocationID" in properties:
            found["invocation"] = bytes(properties["InvocationID"]).hex()
        if "Job" in properties:
            found["job"] = int(properties["Job"][0])
        return replace(self, **found) if found else self
