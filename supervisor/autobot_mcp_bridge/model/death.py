"""How a server's process ended, as far as the runtime can tell."""

import signal
from dataclasses import dataclass
from enum import StrEnum

from autobot_mcp_bridge.model.setup_steps import step_name

# Characters of its last line of stderr that the sentence quotes; `last_words` has it whole.
QUOTED = 200


class DeathCause(StrEnum):
    """The stable words: the same in a client's error, the journal and the metrics."""

    EXIT = "exit"  # it ended by itself; `status` tells how
    SIGNAL = "signal"  # a signal ended it; `status` is its number
    MEMORY = "memory"  # it was ended for using more than limits.memory
    START_TIMEOUT = "start_timeout"  # no initialize answer within timeouts.start
    EXEC = "exec"  # it could not be started at all; `detail` tells why
    STDOUT_CLOSED = "stdout_closed"  # it lives but can no longer answer
    STDIN_CLOSED = "stdin_closed"  # it lives but can no longer be asked
    UNRESPONSIVE = "unresponsive"  # several deadlines in a row passed without any answer
    BROKEN_HANDSHAKE = "handshake"  # it answered initialize with an error or nonsense
    # what only systemd knows
    SECCOMP = "seccomp"  # SIGSYS: it used a system call that its profile forbids
    WATCHDOG = "watchdog"  # it gave no sign of life for WatchdogSec=
    SETUP = "setup"  # a step before its program failed; `status` tells which
    RESOURCES = "resources"  # systemd could not set up what its unit needs
    TIMEOUT = "timeout"  # a time limit of its unit passed
    START_LIMIT = "start_limit"  # systemd refused to start it once more
    UNKNOWN = "unknown"  # nobody saw how it ended


@dataclass(frozen=True, slots=True)
class Death:
    """The end of one invocation of a server.

    Attributes:
        asked: whether the proxy (or an operator) had asked for the end; then it is no crash.
        status: exit status for EXIT and SETUP, signal number for SIGNAL and SECCOMP, else None.
        detail: one sentence more, without secrets.
        last_words: the last lines of stderr, redacted, oldest first.
    """

    cause: DeathCause
    status: int | None = None
    detail: str = ""
    last_words: tuple[str, ...] = ()
    asked: bool = False

    @property
    def clean(self) -> bool:
        """An exit with status 0 that was not forced."""
        return self.cause is DeathCause.EXIT and self.status == 0

    def describe(self) -> str:
        """One sentence for people, such as `it was killed by SIGKILL`."""
        match self.cause:
            case DeathCause.EXIT:
                text = f"it exited with status {self.status}"
            case DeathCause.SIGNAL:
                text = f"it was killed by {signal_name(self.status)}"
            case DeathCause.MEMORY:
                text = "it used more memory than limits.memory allows"
            case DeathCause.START_TIMEOUT:
                text = "it did not answer initialize within timeouts.start"
            case DeathCause.EXEC:
                text = "it could not be started"
            case DeathCause.STDOUT_CLOSED:
                text = "it closed its stdout"
            case DeathCause.STDIN_CLOSED:
                text = "it closed its stdin"
            case DeathCause.UNRESPONSIVE:
                text = "it answered nothing for several deadlines in a row"
            case DeathCause.BROKEN_HANDSHAKE:
                text = "it did not initialize"
            case DeathCause.SECCOMP:
                text = "it was killed for a system call that its profile forbids"
            case DeathCause.WATCHDOG:
                text = "it gave no sign of life to its watchdog"
            case DeathCause.SETUP:
                text = f"its set-up failed at step {step_name(self.status)}, status {self.status}"
            case DeathCause.RESOURCES:
                text = "systemd could not set up what its unit needs"
            case DeathCause.TIMEOUT:
                text = "a time limit of its unit passed"
            case DeathCause.START_LIMIT:
                text = "its unit was started too often"
            case DeathCause.UNKNOWN:
                text = "it ended, and nobody saw how"
        if self.detail:
            return f"{text}: {self.detail}"
        if self.last_words and not self.clean and not self.asked:
            return f"{text}; it last said: {self.last_words[-1][:QUOTED]}"
        return text

    def as_data(self) -> dict[str, object]:
        """For `error.data` and `--json`."""
        data: dict[str, object] = {"cause": self.cause.value}
        if self.cause in (DeathCause.SIGNAL, DeathCause.SECCOMP):
            data["signal"] = signal_name(self.status)
        elif self.status is not None:
            data["status"] = self.status
        if self.cause is DeathCause.SETUP:
            data["step"] = step_name(self.status)
        if self.detail:
            data["detail"] = self.detail
        if self.last_words:
            data["stderr"] = list(self.last_words)
        return data


def signal_name(number: int | None) -> str:
    """`SIGKILL` for 9; a number that has no name stays a number."""
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"
