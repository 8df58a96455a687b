"""What can be relaxed for a server, one directive or key each, and what hints at it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from autobot_mcp_bridge.diagnosis.original import Original
from autobot_mcp_bridge.diagnosis.outcome import Outcome
from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.finding import Finding
from autobot_mcp_bridge.model.server import Network
from autobot_mcp_bridge.units import escape
from autobot_mcp_bridge.units.sandbox import confinement, network, resolvers
from autobot_mcp_bridge.units.sandbox.confinement import HOMES, PREFIX
from autobot_mcp_bridge.units.sandbox.profiles import profile_of

NETWORK = ("PrivateNetwork=no", "RestrictAddressFamilies=AF_INET AF_INET6", "IPAddressDeny=")
# Those that a server may make without a capability; after the unit's own list, they add to it.
FAMILIES = ("AF_NETLINK", "AF_UNIX", "AF_INET", "AF_INET6", "AF_PACKET", "AF_ALG", "AF_VSOCK")
# How often a limit is doubled for a start that does without any sandbox.
WIDE = 16
_MOST_PATHS = 4
_TOO_MUCH = ("/", "/var", "/srv", "/opt", *HOMES)
_NOT_GIVEN = ("/proc", "/sys", "/dev", "/usr", "/etc", "/run", "/var/cache/mcp-bridge", "/boot")
# Paths in what a server says last: quoted, or after a blank or a colon.
_REFUSED = re.compile(
    r"denied|read-only|no such file|not permitted|e(?:acces|rofs|noent)|cannot", re.IGNORECASE
)
_PATH = re.compile(r"""(?:(?<=['"\s:(=])|^)(/[^\s'":,;)]+)""")

_NETWORK_HINT = (
    r"name resolution|name or service not known|eai_again|enotfound|getaddrinfo|"
    r"unreachable|enetunreach|econnrefused|resolve|no such host|dial tcp|connection"
)
# What programs say of a CONNECT that is refused: urllib, curl, undici; and names without a resolver.
_EGRESS_HINT = rf"tunnel|proxy|\b40[35]\b|{_NETWORK_HINT}"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is different in a try, and how it becomes so for good.

    Attributes:
        why: what the server does, as the end of a sentence that begins with its name.
        lines: of [Service].
        key: the same as a part of the definition in servers.json, where there is such a key.
        hint: what in its last words makes this likely.
    """

    finding: Finding | None  # None: a check has its word
    why: str
    lines: tuple[str, ...]
    key: Mapping[str, object] = field(default_factory=dict)
    hint: str = ""

    @property
    def code(self) -> str:
        return self.finding or ""

    def fits(self, outcome: Outcome) -> bool:
        """Whether the last words speak for it."""
        return bool(self.hint) and _says(self.hint, outcome)


_ALWAYS = (
    Change(
        Finding.SYSCALL_DENIED,
        "makes a system call that SystemCallFilter= denies",
        ("SystemCallFilter=", "SystemCallArchitectures="),
        hint=r"operation not permitted|eperm|bad system call|seccomp|syscall|sigsys",
    ),
    Change(
        Finding.CODE_AT_RUN_TIME,
        "makes memory writable and executable, which MemoryDenyWriteExecute= denies",
        ("MemoryDenyWriteExecute=no",),
        hint=r"mprotect|mmap|executable memory|prot_exec|w\^x|\bjit\b|ffi|codespace|"
        r"sigtrap|sigabrt|sigill|sigsegv",
    ),
    Change(
        Finding.ADDRESS_FAMILY_DENIED,
        "makes a socket of a family that RestrictAddressFamilies= denies",
        (f"RestrictAddressFamilies={' '.join(FAMILIES)}",),
        hint=r"address family|eafnosupport|netlink|af_unix|uv_interface_addresses",
    ),
    Change(
        Finding.NOT_EXECUTABLE,
        "executes a file from a place that NoExecPaths= names",
        ("NoExecPaths=", "ExecPaths="),
        hint=r"permission denied|eacces|cannot execute|failed to map segment|exec",
    ),
    Change(
        Finding.NETWORK_NEEDED,
        "needs the network at its start, and has none",
        NETWORK,
        {"network": {"mode": "internet"}},
        hint=_NETWORK_HINT,
    ),
    Change(
        Finding.NAMESPACE_DENIED,
        "makes namespaces, which RestrictNamespaces= denies",
        ("RestrictNamespaces=no",),
        hint=r"namespace|unshare|\bclone\b|sandbox|zygote",
    ),
    Change(
        Finding.USERS_HIDDEN,
        "needs to see other users, whom PrivateUsers= hides",
        ("PrivateUsers=no",),
        hint=r"nobody|uid|invalid argument|getpwuid|owner",
    ),
    Change(
        Finding.DEVICE_HIDDEN,
        "opens a device that PrivateDevices= hides",
        ("PrivateDevices=no", "DevicePolicy=auto"),
        hint=r"/dev/|device",
    ),
    Change(
        Finding.PROC_HIDDEN,
        "reads what ProcSubset= and ProtectProc= hide in /proc",
        ("ProcSubset=all", "ProtectProc=default"),
        hint=r"/proc|meminfo|cpuinfo|loadavg",
    ),
    Change(
        Finding.KERNEL_HIDDEN,
        "changes what the directives that protect the kernel keep from it",
        (
            *("ProtectKernelTunables=no", "ProtectKernelLogs=no", "ProtectKernelModules=no"),
            *("ProtectControlGroups=no", "ProtectClock=no", "ProtectHostname=no"),
            *("LockPersonality=no", "RestrictRealtime=no", "PrivateIPC=no"),
        ),
        hint=r"/sys/|sysctl|cgroup|kmsg|personality|sched|read-only file system",
    ),
)


def candidates(original: Original, outcome: Outcome) -> list[Change]:
    """All that may help, the likeliest first; those that nothing speaks for keep their order."""
    found = [*_paths(original, outcome), *_home(original), *_limits(original)]
    found += (_as_can_be(change, original) for change in _ALWAYS)
    return sorted(found, key=lambda change: not change.fits(outcome))


def _as_can_be(change: Change, original: Original) -> Change:
    """The change without its key, where units cannot have the network mode that it names."""
    if "network" not in change.key:
        return change
    spec = original.spec.model_copy(update={"network": Network(mode="internet")})
    refused = confinement.refusals(spec, Command(original.argv), confinement.Facts())
    return replace(change, key={}) if any(loc[0] == "network" for loc, _ in refused) else change


def internet(original: Original) -> tuple[str, ...]:
    """The lines that network.mode internet will have in the server's own drop-in."""
    spec = original.spec.model_copy(update={"network": Network(mode="internet")})
    profile = profile_of(spec, Command(original.argv))
    found = network.reach(spec, profile, resolvers.read())
    if found is None:
        return ()
    return (
        f"PrivateNetwork={'yes' if found.private else 'no'}",
        f"RestrictAddressFamilies={' '.join(found.families)}",
        "IPAddressAllow=",
        *(f"IPAddressAllow={' '.join(words)}" for words in found.allowed),
    )


def asks_for_a_network(outcome: Outcome) -> bool:
    """Whether the last words speak for it."""
    return _says(_NETWORK_HINT, outcome)


def asks_the_egress(outcome: Outcome) -> bool:
    """The same of a server whose way out is the egress proxy."""
    return _says(_EGRESS_HINT, outcome)


def _says(hint: str, outcome: Outcome) -> bool:
    text = "\n".join((outcome.said, outcome.noise, *outcome.words))
    return re.search(hint, text, re.IGNORECASE) is not None


def free(changes: list[Change]) -> tuple[str, ...]:
    """The lines of a start without any of this."""
    return (*(line for change in changes for line in change.lines), "RestrictAddressFamilies=")


def memory(original: Original, factor: int) -> Change:
    """So many times the memory."""
    size = original.spec.limits.memory * factor
    text = f"{size >> 20}M" if size >= 1 << 20 else str(size)
    return Change(
        Finding.MEMORY_LIMIT,
        "needs more memory for its start than limits.memory",
        (f"MemoryMax={size}",),
        {"limits": {"memory": text}},
        hint=r"memoryerror|cannot allocate memory|enomem|out of memory|heap",
    )


def tasks(original: Original, factor: int) -> Change:
    number = original.spec.limits.tasks * factor
    return Change(
        Finding.TASKS_LIMIT,
        "needs more threads and processes than limits.tasks",
        (f"TasksMax={number}",),
        {"limits": {"tasks": number}},
        hint=r"temporarily unavailable|eagain|new thread|pthread|fork",
    )


def open_files(original: Original, factor: int) -> Change:
    number = original.spec.limits.open_files * factor
    return Change(
        Finding.OPEN_FILES_LIMIT,
        "needs more open files than limits.open_files",
        (f"LimitNOFILE={number}",),
        {"limits": {"open_files": number}},
        hint=r"too many open files|emfile",
    )


def _limits(original: Original) -> Iterator[Change]:
    yield memory(original, WIDE)
    yield tasks(original, WIDE)
    yield open_files(original, WIDE)


def variable(name: str, value: str, finding: Finding, why: str, hint: str = "") -> Change:
    """Another value of an environment variable."""
    line = f"Environment={escape.assignment(PREFIX + name, value)}"
    return Change(finding, why, (line,), {"env": {name: value}}, hint)


def _home(original: Original) -> Iterator[Change]:
    given = original.spec.env.get("HOME")
    if given is not None and given != original.home:
        yield variable(
            "HOME",
            original.home,
            Finding.HOME_UNWRITABLE,
            "cannot write to the HOME that its env names",
            hint=re.escape(given) + "|permission denied|read-only|eacces|erofs",
        )


def _paths(original: Original, outcome: Outcome) -> Iterator[Change]:
    """Directories that its last words name, and that are on this host."""
    for folder in _named(original, outcome)[:_MOST_PATHS]:
        bound = escape.bound(folder)
        show: tuple[str, ...] = ()
        hides = "its root does not hold" if original.spec.root is not None else ""
        if any(PurePosixPath(folder).is_relative_to(home) for home in HOMES):
            show, hides = ("ProtectHome=tmpfs",), hides or "ProtectHome= hides"
        if hides:
            yield Change(
                Finding.PATH_HIDDEN,
                f"reads {folder}, which {hides}",
                (*show, f"BindReadOnlyPaths={bound}"),
                {"paths": {"read": [*original.spec.paths.read, folder]}},
                hint=re.escape(folder),
            )
        yield Change(
            Finding.PATH_READ_ONLY,
            f"writes to {folder}, which is read-only in its sandbox",
            (*show, f"BindPaths={bound}"),
            {"paths": {"write": [*original.spec.paths.write, folder]}},
            hint=re.escape(folder),
        )


def _named(original: Original, outcome: Outcome) -> list[str]:
    """Those that could be given to it; its own it has, and of the system's nothing is given."""
    found: dict[str, None] = {}
    lines = [line for line in (outcome.said, *outcome.words) if _REFUSED.search(line)]
    for match in _PATH.finditer("\n".join(lines)):
        place = Path(match[1].rstrip("."))
        folder = place if place.is_dir() else place.parent
        text = str(folder)
        if not folder.is_dir() or any(folder.is_relative_to(each) for each in _NOT_GIVEN):
            continue
        if text in _TOO_MUCH or text.startswith(original.home) or not _fits_a_unit(text):
            continue
        found[text] = None
    return [*found]


def _fits_a_unit(folder: str) -> bool:
    try:
        return bool(escape.bound(folder))
    except ValueError:
        return False
