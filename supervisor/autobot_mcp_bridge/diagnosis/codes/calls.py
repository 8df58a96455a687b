"""The words of model/errors.py: why a call got no answer."""

from autobot_mcp_bridge.diagnosis.codes.code import Code
from autobot_mcp_bridge.model.errors import Cause

_STATUS = "`mcp-bridge status NAME`"
_LOGS = "`mcp-bridge logs NAME`"
_DOCTOR = "`mcp-bridge doctor NAME`"
_CLIENT = "the client's own log"


def _code(cause: Cause, meaning: str, usually: str, remedy: str, look: str) -> Code:
    return Code(cause.word, meaning, usually, remedy, look)


CALLS = (
    _code(
        Cause.INSTALLING,
        "the server's package is not there yet",
        "the server is new, or its version has changed; installs take seconds to minutes",
        "wait, and call again",
        "`journalctl -u 'mcp-bridge-fetch@*'`",
    ),
    _code(
        Cause.INSTALL_FAILED,
        "the server's package could not be installed",
        "a misspelt name or version, or a registry that is not reached",
        "mend the command or the network, then `mcp-bridge apply`",
        f"{_STATUS} has the installer's words",
    ),
    _code(
        Cause.CREDENTIAL_MISSING,
        "a secret that the definition names is not on this host, or is not root's alone",
        "it was never stored, or under another name",
        "`mcp-bridge secret set NAME`; the message says which",
        "`mcp-bridge secret list`",
    ),
    _code(
        Cause.REFUSED,
        "this host cannot give the server what its definition asks for",
        "a path, an account or a root that is not there, or `max_exposure` that is exceeded",
        "mend what the message says, then `mcp-bridge apply` (without systemd `mcp-bridge reload`)",
        "`mcp-bridge check`, as root",
    ),
    _code(
        Cause.DISABLED,
        "the server is not served",
        "`enabled` is false in its definition",
        "`mcp-bridge enable NAME`",
        "servers.json",
    ),
    _code(
        Cause.STOPPED,
        "somebody stopped the server, which holds until it is started",
        "`mcp-bridge stop` or `systemctl stop`",
        "`mcp-bridge start NAME`",
        "`journalctl MCP_INSTANCE=NAME`",
    ),
    _code(
        Cause.BREAKER_OPEN,
        "the server crashed too often, and is not started for a while",
        "the same crash at each start",
        "mend the cause, then `mcp-bridge reset NAME`; or wait for the next try",
        _DOCTOR,
    ),
    _code(
        Cause.MASKED,
        "the server's unit is masked",
        "`systemctl mask`",
        "`systemctl unmask autobot-mcp-bridge@NAME.service`",
        "`systemctl status autobot-mcp-bridge@NAME.service`",
    ),
    _code(
        Cause.NO_UNIT,
        "systemd has no unit for the server, or does not answer",
        "`mcp-bridge apply` has not run, or was refused",
        "`mcp-bridge apply`",
        "`systemctl status autobot-mcp-bridge@NAME.socket`",
    ),
    _code(
        Cause.QUEUE_FULL,
        "too many calls are in flight, or too many bytes wait for the server's stdin",
        "a server that does not read, or clients that call faster than it answers",
        "call less at once; `limits.calls_per_server`, `caps.queue`",
        "`mcp-bridge top`",
    ),
    _code(
        Cause.TOO_MANY_SESSIONS,
        "the server or the token has as many sessions as it may",
        "clients that do not end their sessions",
        "`limits.sessions_per_server`, `limits.sessions_per_token`; of isolated sessions "
        "`limits.isolated_per_server`, `limits.isolated_per_token`",
        _STATUS,
    ),
    _code(
        Cause.SHUTTING_DOWN,
        "the proxy restarts, or the server is being removed",
        "an upgrade",
        "call again",
        "`systemctl status mcp-bridge-proxy.service`",
    ),
    _code(
        Cause.AUDIT_UNAVAILABLE,
        "the call could not be recorded, and `audit.required` wants that each is",
        "the disk of the state directory is full",
        "make room; calls go on within a second",
        "`journalctl -u mcp-bridge-proxy.service -p err`",
    ),
    _code(
        Cause.BAD_TEXT,
        "the message has text that cannot be passed on",
        "lone surrogates, or deep nesting",
        "mend the client",
        _CLIENT,
    ),
    _code(
        Cause.METHOD_DENIED,
        "the method is none that is let through",
        "a method of neither era",
        "`methods.allow`, if it should be",
        "servers.json",
    ),
    _code(
        Cause.TOOL_DENIED,
        "the tool is not allowed, or not there",
        "`tools.allow` or `tools.deny`, or a misspelt name",
        "`tools.allow` and `tools.deny`",
        "servers.json; the server's tools/list",
    ),
    _code(
        Cause.TOOL_HELD,
        "the tool is not as it was accepted, and `tools.drift` holds it back",
        "another version of the server, or a server that has changed its tools by itself",
        "look at what differs, then `mcp-bridge tools accept NAME`",
        "`mcp-bridge tools NAME`",
    ),
    _code(
        Cause.TASK_UNKNOWN,
        "the session has no such task",
        "a task of another session, or one that is over",
        "mend the client",
        _CLIENT,
    ),
    _code(
        Cause.DUPLICATE_ID,
        "the client uses a request id twice at once",
        "a client that counts its requests wrongly",
        "mend the client",
        _CLIENT,
    ),
    _code(
        Cause.INPUT_LATE,
        "the call that the client goes on with is over",
        "10 minutes have passed, or its process has ended",
        "make the call anew",
        _LOGS,
    ),
    _code(
        Cause.PROJECT_MISMATCH,
        "the caller comes from another project than the server's; no server was asked",
        "`X-Project` is missing, or says another than the key or the route",
        "call with a key of that project, or name it in `X-Project`",
        "`mcp-bridge key list TENANT`; lines with `refused:` in the proxy's log",
    ),
    _code(
        Cause.START_FAILED,
        "the server's process did not become ready",
        "a crash at its start; `error.data` has its cause",
        "mend what doctor names",
        _DOCTOR,
    ),
    _code(
        Cause.CRASHED,
        "the server ended during the call, which was not sent twice",
        "a bug of the server, or a limit; `error.data` has its cause",
        "the next call starts it again",
        _LOGS,
    ),
    _code(
        Cause.CALL_TIMEOUT,
        "no answer came within `timeouts.call`",
        "a slow tool, or a server that hangs",
        "raise `timeouts.call` if the tool is slow by nature",
        "`mcp-bridge top`",
    ),
    _code(
        Cause.ANSWER_TOO_LARGE,
        "the answer is longer than `caps.line`",
        "a tool that returns a whole file",
        "raise `caps.line`, or ask for less",
        _LOGS,
    ),
    _code(
        Cause.CAPABILITY_REQUIRED,
        "the server asks its client for something that this client has not declared",
        "elicitation, sampling or roots with a client that has none of it",
        "use a client that can; `error.data` names what",
        _CLIENT,
    ),
    _code(
        Cause.BAD_ANSWER,
        "the server's answer is no JSON-RPC",
        "a bug of the server",
        "report it to its author",
        _LOGS,
    ),
    _code(
        Cause.CANCELLED,
        "the client took the call back",
        "its own time limit, or its user",
        "nothing",
        _CLIENT,
    ),
    _code(
        Cause.STOPPED_IN_FLIGHT,
        "the server was stopped while the call was open",
        "an operator, or a change of its definition",
        "call again",
        "`journalctl MCP_INSTANCE=NAME`",
    ),
    _code(
        Cause.INTERNAL,
        "the proxy has a fault",
        "a bug of this program",
        "report it, with what `mcp-bridge support` writes",
        "`journalctl -u mcp-bridge-proxy.service -p err` has a traceback",
    ),
)
