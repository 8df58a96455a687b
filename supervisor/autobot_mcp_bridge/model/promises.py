"""What the sandbox of a unit promises, and which of it a server's definition relies on: pure.

Whether a host's kernel keeps a promise is found out by trying it there (templates/probe.py).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from autobot_mcp_bridge.model.server import ServerSpec


class Promise(StrEnum):
    """The words of the metric, of `check --host` and of the journal's MCP_ISOLATION."""

    MEMORY = "memory"
    MEMORY_HIGH = "memory_high"
    MEMORY_CAUSE = "memory_cause"
    SWAP = "swap"
    TASKS = "tasks"
    CPU = "cpu"
    CPU_WEIGHT = "cpu_weight"
    IO_WEIGHT = "io_weight"
    NETWORK = "network"
    ADDRESSES = "addresses"
    SYSCALLS = "syscalls"
    CODE = "code"
    EXECUTION = "execution"
    FILES = "files"
    PROCESSES = "processes"
    USERS = "users"

    @property
    def says(self) -> str:
        return _SAYS[self]


_SAYS = {
    Promise.MEMORY: "a server that uses more than limits.memory is ended",
    Promise.MEMORY_HIGH: "a server that uses more than limits.memory_high is slowed down",
    Promise.MEMORY_CAUSE: "an end for memory is told as such",
    Promise.SWAP: "no memory of a server goes to the swap",
    Promise.TASKS: "a server has no more than limits.tasks processes and threads",
    Promise.CPU: "a server gets no more than limits.cpu",
    Promise.CPU_WEIGHT: "limits.cpu_weight divides a busy processor",
    Promise.IO_WEIGHT: "limits.io_weight divides a busy disk",
    Promise.NETWORK: "a server without a network reaches no interface of the host",
    Promise.ADDRESSES: "a server with a network reaches allowed addresses only",
    Promise.SYSCALLS: "a server can use the usual system calls only",
    Promise.CODE: "a server makes no machine code at run time",
    Promise.EXECUTION: "a server executes nothing that it can write",
    Promise.FILES: "a server can write its own directories only",
    Promise.PROCESSES: "a server sees no process of others",
    Promise.USERS: "a server's user means nothing outside of it",
}
# What a definition asks for beyond what every server has: missed only by those who ask.
OPTIONAL = frozenset({Promise.MEMORY_HIGH, Promise.CPU_WEIGHT, Promise.IO_WEIGHT})


@dataclass(frozen=True, slots=True)
class Kept:
    """Whether a host keeps a promise; `why` it does not, as a clause."""

    kept: bool
    why: str = ""


Facts = Mapping[Promise, Kept]


def settings(promise: Promise, spec: ServerSpec) -> Iterator[str]:
    """Keys of the definition that rely on the promise, beyond what every server relies on."""
    limits = spec.limits
    match promise:
        case Promise.MEMORY | Promise.TASKS | Promise.CPU:
            yield f"limits.{promise}"
        case Promise.MEMORY_HIGH | Promise.CPU_WEIGHT | Promise.IO_WEIGHT:
            if getattr(limits, promise) is not None:
                yield f"limits.{promise}"
        case Promise.NETWORK if spec.network.mode in ("none", "loopback") and not _reaches(spec):
            yield "network.mode"
        case Promise.ADDRESSES if spec.network.mode not in ("none", "loopback"):
            yield "network.mode"
        case Promise.ADDRESSES if _reaches(spec):
            yield "profile" if spec.url is None else "url"


def _reaches(spec: ServerSpec) -> bool:
    """Whether it has a network although its definition names no mode."""
    return spec.profile in ("npx", "uvx") or spec.url is not None


def broken(facts: Facts, specs: Iterable[ServerSpec]) -> Iterator[tuple[Promise, str]]:
    """A sentence for each promise that this host does not keep and some server relies on."""
    some = tuple(specs)
    for promise, found in facts.items():
        if found.kept or not some:
            continue
        relying: dict[str, list[str]] = {}
        for spec in some:
            for key in settings(promise, spec):
                relying.setdefault(key, []).append(spec.instance)
        if not relying and promise in (*OPTIONAL, Promise.ADDRESSES, Promise.NETWORK):
            continue
        who = "; ".join(f"{key} of {', '.join(names)}" for key, names in relying.items())
        sentence = f"not kept on this host: {promise.says} ({found.why})"
        yield promise, f"{sentence}; {who}" if who else sentence
