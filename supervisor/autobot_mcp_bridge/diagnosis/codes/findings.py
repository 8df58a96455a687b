"""The words of model/finding.py: why a server does not start."""

from autobot_mcp_bridge.diagnosis.codes.code import Code
from autobot_mcp_bridge.model.finding import Finding

_EXEC = "systemd.exec(5)"
_LOGS = "`mcp-bridge logs NAME`"
_LINE = "the line that doctor prints, if the server is trusted with it"

FINDINGS = (
    Code(
        Finding.SYSCALL_DENIED,
        "the server makes a system call that `SystemCallFilter=` answers with EPERM",
        "it sets priorities, locks memory or pins itself to a CPU, and does not go on without",
        _LINE,
        f"{_EXEC}; `systemd-analyze syscall-filter`",
    ),
    Code(
        Finding.CODE_AT_RUN_TIME,
        "the server makes memory that is writable and executable, which "
        "`MemoryDenyWriteExecute=` forbids",
        "a just-in-time compiler or libffi; node has the profile `node` by its command",
        f'`"profile": "node"` for what runs on node; else {_LINE}',
        _EXEC,
    ),
    Code(
        Finding.ADDRESS_FAMILY_DENIED,
        "the server makes a socket of a family that `RestrictAddressFamilies=` leaves out",
        "it lists its network interfaces (AF_NETLINK), or speaks to a local service (AF_UNIX)",
        _LINE,
        f"{_EXEC}; address_families(7)",
    ),
    Code(
        Finding.NOT_EXECUTABLE,
        "the server executes, or maps as code, a file from a place that `NoExecPaths=` names",
        "it unpacks a helper or a native module into its own directory or /tmp",
        f"install the file with its package; else {_LINE}",
        _EXEC,
    ),
    Code(
        Finding.NETWORK_NEEDED,
        "the server needs the network at its start, and has none, or not that host",
        "it resolves a name, or calls home; with `network.mode` `names`: a host that "
        "`network.allow` leaves out",
        "`network.mode` in its definition, `names` where its hosts are known; else what doctor "
        "prints",
        "docs/CONFIGURATION.md",
    ),
    Code(
        Finding.NAMESPACE_DENIED,
        "the server makes namespaces, which `RestrictNamespaces=` forbids",
        "a browser, or a sandbox of the server's own",
        _LINE,
        f"{_EXEC}; namespaces(7)",
    ),
    Code(
        Finding.USERS_HIDDEN,
        "the server needs to see users other than its own and root",
        "`PrivateUsers=` shows every other owner of a file as nobody",
        _LINE,
        _EXEC,
    ),
    Code(
        Finding.DEVICE_HIDDEN,
        "the server opens a device that `PrivateDevices=` hides",
        "it wants a GPU, a terminal or a serial line",
        "a `DeviceAllow=` of that device alone is better than the line that doctor prints",
        "systemd.resource-control(5)",
    ),
    Code(
        Finding.PROC_HIDDEN,
        "the server reads what `ProcSubset=` and `ProtectProc=` hide in /proc",
        "it asks for the host's memory, load or processors",
        _LINE,
        _EXEC,
    ),
    Code(
        Finding.KERNEL_HIDDEN,
        "the server uses what the `ProtectKernel…=`, `ProtectClock=`, `ProtectHostname=`, "
        "`ProtectControlGroups=`, `LockPersonality=` and `Restrict…=` directives forbid",
        "it changes settings of the kernel, the clock or the host's name, or its own scheduling",
        _LINE,
        _EXEC,
    ),
    Code(
        Finding.PATH_HIDDEN,
        "the server needs a path that its sandbox hides",
        "a file in a home, which `ProtectHome=` hides, or one that its `root` does not hold",
        "`paths.read` or `paths.write` in its definition",
        "docs/CONFIGURATION.md",
    ),
    Code(
        Finding.PATH_READ_ONLY,
        "the server writes to a path that is read-only in its sandbox",
        "`ProtectSystem=strict`: a server writes to its own directories and `paths.write` only",
        "`paths.write` in its definition, with rights for its uid; or have it write below $HOME",
        "docs/CONFIGURATION.md",
    ),
    Code(
        Finding.HOME_UNWRITABLE,
        "the server cannot write to its $HOME",
        "`env.HOME` names a directory other than its own",
        "take HOME out of `env`: it is the server's own directory then",
        "servers.json",
    ),
    Code(
        Finding.SANDBOX,
        "the server starts without its sandbox only, and no single directive is to blame",
        "it needs several things at once",
        "see its last words; the directives can be relaxed one by one in a 90-*.conf",
        _EXEC,
    ),
    Code(
        Finding.MEMORY_LIMIT,
        "the server needs more memory for its start than `limits.memory`",
        "a limit that was guessed",
        "the value that doctor prints",
        "`mcp-bridge top`",
    ),
    Code(
        Finding.TASKS_LIMIT,
        "the server needs more threads and processes than `limits.tasks`",
        "node starts 7 to 11 threads, a browser many more",
        "the value that doctor prints",
        "docs/CONFIGURATION.md",
    ),
    Code(
        Finding.OPEN_FILES_LIMIT,
        "the server needs more open files than `limits.open_files`",
        "it watches directories, or loads many modules",
        "the value that doctor prints",
        "docs/CONFIGURATION.md",
    ),
    Code(
        Finding.SLOW_START,
        "the server answers initialize, but later than `timeouts.start`",
        "it loads a model or an index first",
        "the value that doctor prints; `limits.cpu`, if it computes all the time",
        "`mcp-bridge top`",
    ),
    Code(
        Finding.PROGRAM_MISSING,
        "the program of `command`, or the interpreter in its first line, is not there",
        "a misspelt path, or a package that was removed",
        "install it, or name where it is",
        "servers.json",
    ),
    Code(
        Finding.PROGRAM_UNUSABLE,
        "the program is there, but the server's uid cannot execute it",
        "its mode, or a directory on the way that others may not enter",
        "the chmod that doctor prints; or install it below /usr/local or /opt",
        "`namei -l PROGRAM`",
    ),
    Code(
        Finding.CREDENTIAL_MISSING,
        "a credential that the definition names is not on this host",
        "it was never stored, or under another name",
        "`mcp-bridge secret set NAME`; doctor says which",
        "`mcp-bridge secret list`",
    ),
    Code(
        Finding.SETUP_FAILED,
        "systemd cannot set up the server's process",
        "a path in `paths` or `cwd` that is gone, or a `run_as` without an account",
        "mend what the step names",
        "`systemctl status autobot-mcp-bridge@NAME.service`",
    ),
    Code(
        Finding.NOT_IN_FORCE,
        "the server's definition is not in force",
        "a mistake in the files, which `mcp-bridge apply` refuses whole",
        "mend what `mcp-bridge check` tells",
        "`mcp-bridge list`",
    ),
    Code(
        Finding.STDOUT_NOISE,
        "the server writes other things than JSON-RPC to its stdout",
        "a banner, or a log that belongs on stderr",
        "have it write that to stderr; until then the `command` that doctor prints, which leaves "
        "out what is no JSON",
        "`mcp_bridge_dropped_lines_total`",
    ),
    Code(
        Finding.STDOUT_BUFFERED,
        "the server answers, but its answers stay in a buffer of its own until it ends",
        "stdout is a pipe, for which most languages buffer by the block",
        "have it flush after each line; `PYTHONUNBUFFERED=1` for Python, `stdbuf -oL` for C",
        "stdbuf(1)",
    ),
    Code(
        Finding.REMOTE_END,
        "the remote server behind `url` cannot be used",
        "it does not run or refuses the key; its name, certificate or address is not accepted",
        "its last words say which; the statuses stand in OPERATE.md, Remote servers",
        _LOGS,
    ),
    Code(
        Finding.SERVER_FAULT,
        "the server fails without its sandbox, too",
        "a missing argument, variable or service, or a bug",
        "see its last words",
        _LOGS,
    ),
    Code(
        Finding.UNDECIDED,
        "doctor did not find the cause",
        "its time was over, or `--strict` let it relax nothing",
        "a larger `--deadline`, or no `--strict`",
        _LOGS,
    ),
)
