"""From what systemd says of an ended unit to a cause of death.

The words are those of the unit's `Result` and of $SERVICE_RESULT, $EXIT_CODE, $EXIT_STATUS in
systemd.exec(5); which end has which was measured with systemd 252 and 257.
"""

import signal
from dataclasses import dataclass

from autobot_mcp_bridge.model.death import Death, DeathCause
from autobot_mcp_bridge.model.setup_steps import EXEC, STEPS

# siginfo's CLD_*, and the words for them in $EXIT_CODE
EXITED, KILLED, DUMPED = 1, 2, 3
CODES = {"exited": EXITED, "killed": KILLED, "dumped": DUMPED}
_BY_RESULT = {
    "oom-kill": DeathCause.MEMORY,
    "watchdog": DeathCause.WATCHDOG,
    "timeout": DeathCause.TIMEOUT,
    "resources": DeathCause.RESOURCES,
    "start-limit-hit": DeathCause.START_LIMIT,
}


@dataclass(frozen=True, slots=True)
class UnitResult:
    """How a unit ended.

    Attributes:
        result: Result, such as `exit-code`; "" unknown.
        code: EXITED, KILLED or DUMPED; 0 unknown, or there was no process.
        status: the exit status or the signal's number.
        oom_kill: how many processes the kernel ended for want of memory. With the v1 controllers
            the result is `signal` even then.
    """

    result: str = ""
    code: int = 0
    status: int = 0
    oom_kill: int = 0

    def death(
        self,
        *,
        began: bool = False,
        asked: bool = False,
        last_words: tuple[str, ...] = (),
        detail: str = "",
    ) -> Death:
        """Say what that means.

        Args:
            began: the launcher has said hello, so the statuses of set-up steps are the server's
                own; all but that of exec.
            asked: the end was asked for.
            last_words: the last lines of stderr, redacted.
            detail: one sentence more about a set-up that failed; of no other end it says anything.
        """
        cause, status = self._cause(began)
        detail = detail if cause is DeathCause.SETUP else ""
        return Death(cause, status, detail, last_words, asked)

    def _cause(self, began: bool) -> tuple[DeathCause, int | None]:
        # With success a child of it was ended, and it went on.
        if self.oom_kill and self.result not in ("", "success"):
            return DeathCause.MEMORY, None
        if self.result in _BY_RESULT:
            return _BY_RESULT[self.result], None
        match self.code:
            case 1 if self.status == EXEC:
                return DeathCause.EXEC, None
            case 1 if self.status in STEPS and not began:
                return DeathCause.SETUP, self.status
            case 1:
                return DeathCause.EXIT, self.status
            case 2 | 3 if self.status == signal.SIGSYS:
                return DeathCause.SECCOMP, self.status
            case 2 | 3:
                return DeathCause.SIGNAL, self.status
        return DeathCause.UNKNOWN, None
