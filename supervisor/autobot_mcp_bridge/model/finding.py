"""What `mcp-bridge doctor` finds: why a server does not start."""

from enum import StrEnum


class Finding(StrEnum):
    """The stable words, beside those of `Cause` for a server that may not start."""

    # the sandbox
    SYSCALL_DENIED = "syscall_denied"
    CODE_AT_RUN_TIME = "code_at_run_time"
    ADDRESS_FAMILY_DENIED = "address_family_denied"
    NOT_EXECUTABLE = "not_executable"
    NETWORK_NEEDED = "network_needed"
    NAMESPACE_DENIED = "namespace_denied"
    USERS_HIDDEN = "users_hidden"
    DEVICE_HIDDEN = "device_hidden"
    PROC_HIDDEN = "proc_hidden"
    KERNEL_HIDDEN = "kernel_hidden"
    PATH_HIDDEN = "path_hidden"
    PATH_READ_ONLY = "path_read_only"
    HOME_UNWRITABLE = "home_unwritable"
    SANDBOX = "sandbox"
    # limits
    MEMORY_LIMIT = "memory_limit"
    TASKS_LIMIT = "tasks_limit"
    OPEN_FILES_LIMIT = "open_files_limit"
    SLOW_START = "slow_start"
    # what it needs of the host
    PROGRAM_MISSING = "program_missing"
    PROGRAM_UNUSABLE = "program_unusable"
    CREDENTIAL_MISSING = "no_credential"
    SETUP_FAILED = "setup_failed"
    NOT_IN_FORCE = "not_in_force"
    # the server itself
    STDOUT_NOISE = "stdout_noise"
    STDOUT_BUFFERED = "stdout_buffered"
    REMOTE_END = "remote_end"
    SERVER_FAULT = "server_fault"
    UNDECIDED = "undecided"
