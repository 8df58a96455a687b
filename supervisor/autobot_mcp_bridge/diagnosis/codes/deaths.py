"""The words of model/death.py: why a server's process ended."""

from autobot_mcp_bridge.diagnosis.codes.code import Code
from autobot_mcp_bridge.model.death import DeathCause

_LOGS = "`mcp-bridge logs NAME`"
_DOCTOR = "`mcp-bridge doctor NAME`"
_UNIT = "`systemctl status autobot-mcp-bridge@NAME.service`"

DEATHS = (
    Code(
        DeathCause.EXIT,
        "the process ended by itself",
        "a missing argument or variable, or a bug",
        "its last lines of stderr say why; where they do not, doctor does",
        _LOGS,
    ),
    Code(
        DeathCause.SIGNAL,
        "a signal ended the process",
        "SIGSEGV, SIGABRT, SIGTRAP: a bug, or memory that may not be written and executed; SIGKILL: "
        "somebody, or the kernel for want of the host's memory",
        "see what doctor finds",
        _DOCTOR,
    ),
    Code(
        DeathCause.MEMORY,
        "the process used more than `limits.memory`",
        "a limit below what the server needs, or a leak",
        "raise `limits.memory`, or give the server less to do",
        "`mcp-bridge top`",
    ),
    Code(
        DeathCause.START_TIMEOUT,
        "no initialize answer came within `timeouts.start`",
        "it waits for a network that it does not have, is slow, or buffers its stdout",
        "see what doctor finds",
        _DOCTOR,
    ),
    Code(
        DeathCause.EXEC,
        "the program could not be executed",
        "it is not there, not executable for its uid, or its interpreter is missing",
        "the path in `command`, its mode and its interpreter",
        _DOCTOR,
    ),
    Code(
        DeathCause.STDOUT_CLOSED,
        "the process lives but can no longer answer",
        "a bug of the server, which has closed its stdout",
        "report it to its author",
        _LOGS,
    ),
    Code(
        DeathCause.STDIN_CLOSED,
        "the process lives but can no longer be asked",
        "a bug of the server, which has closed its stdin",
        "report it to its author",
        _LOGS,
    ),
    Code(
        DeathCause.UNRESPONSIVE,
        "several deadlines in a row passed without any answer, and the process was ended",
        "a server that hangs",
        "the next call starts it; report it to its author",
        _LOGS,
    ),
    Code(
        DeathCause.BROKEN_HANDSHAKE,
        "the process answered initialize with an error or nonsense",
        "a missing variable or argument; the error has its words",
        "give it what it asks for",
        _LOGS,
    ),
    Code(
        DeathCause.SECCOMP,
        "the process was killed for a system call that its sandbox forbids",
        "a `SystemCallErrorNumber=kill` in a drop-in, or a call of another architecture",
        "the line that doctor prints",
        _DOCTOR,
    ),
    Code(
        DeathCause.WATCHDOG,
        "the process gave no sign of life for `WatchdogSec=`",
        "a drop-in that sets it",
        "take the line out: a stdio server does not know of it",
        _UNIT,
    ),
    Code(
        DeathCause.SETUP,
        "systemd could not set up the process; `step` names the step, as systemd.exec(5) does",
        "CREDENTIALS: a file that is missing in /etc/credstore; NAMESPACE: a path in `paths`; USER: "
        "`run_as`",
        "what doctor names",
        _DOCTOR,
    ),
    Code(
        DeathCause.RESOURCES,
        "systemd could not set up what the unit needs",
        "a broken drop-in, or a socket that cannot be made",
        "what systemd says of the unit",
        _UNIT,
    ),
    Code(
        DeathCause.TIMEOUT,
        "a time limit of the unit passed",
        "`RuntimeMaxSec=` in a drop-in, or a stop that took too long",
        "take the line out, or raise it",
        _UNIT,
    ),
    Code(
        DeathCause.START_LIMIT,
        "the unit was started too often",
        "a drop-in that sets `StartLimitIntervalSec=`",
        "`systemctl reset-failed autobot-mcp-bridge@NAME.service`, after its cause is mended",
        _UNIT,
    ),
    Code(
        DeathCause.UNKNOWN,
        "the process ended, and nobody saw how",
        "the proxy or the bus was away",
        "nothing, if it does not happen again",
        "`journalctl MCP_INSTANCE=NAME`",
    ),
)
