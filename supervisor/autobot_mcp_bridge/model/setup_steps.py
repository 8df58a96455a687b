"""The steps of a process's set-up that systemd names by an exit status (systemd.exec(5))."""

EXEC = 203  # also what the launcher exits with when the server's program cannot be executed

STEPS = {
    200: "CHDIR",
    201: "NICE",
    202: "FDS",
    EXEC: "EXEC",
    204: "MEMORY",
    205: "LIMITS",
    206: "OOM_ADJUST",
    207: "SIGNAL_MASK",
    208: "STDIN",
    209: "STDOUT",
    210: "CHROOT",
    211: "IOPRIO",
    212: "TIMERSLACK",
    213: "SECUREBITS",
    214: "SETSCHEDULER",
    215: "CPUAFFINITY",
    216: "GROUP",
    217: "USER",
    218: "CAPABILITIES",
    219: "CGROUP",
    220: "SETSID",
    221: "CONFIRM",
    222: "STDERR",
    224: "PAM",
    225: "NETWORK",
    226: "NAMESPACE",
    227: "NO_NEW_PRIVILEGES",
    228: "SECCOMP",
    229: "SELINUX_CONTEXT",
    230: "PERSONALITY",
    231: "APPARMOR_PROFILE",
    232: "ADDRESS_FAMILIES",
    233: "RUNTIME_DIRECTORY",
    235: "CHOWN",
    236: "SMACK_PROCESS_LABEL",
    237: "KEYRING",
    238: "STATE_DIRECTORY",
    239: "CACHE_DIRECTORY",
    240: "LOGS_DIRECTORY",
    241: "CONFIGURATION_DIRECTORY",
    242: "NUMA_POLICY",
    243: "CREDENTIALS",
    245: "BPF",
}


def step_name(status: int | None) -> str:
    """`NAMESPACE` for 226; a status without a name stays a number."""
    return STEPS.get(status or 0, f"{status}")
