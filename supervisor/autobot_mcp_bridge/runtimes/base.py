"""The seam between a server's definition and its process."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from autobot_mcp_bridge.model.command import Command
from autobot_mcp_bridge.model.death import Death
from autobot_mcp_bridge.model.errors import CallError
from autobot_mcp_bridge.model.server import ServerSpec
from autobot_mcp_bridge.supervision.cgroups import Usage

__all__ = ["Adopted", "Command", "News", "Process", "Runtime", "StartError", "Usage"]


class News(StrEnum):
    """What others have done to a server: a person, or another program."""

    STOPPED = "stopped"  # it is to stay so until it is started again
    STARTED = "started"  # it runs, and waits for us
    LISTENING = "listening"  # it may be started again
    RESET = "reset"  # its crashes are to be forgotten


class StartError(Exception):
    """The process could not be started; `death` says why."""

    def __init__(self, death: Death) -> None:
        super().__init__(death.describe())
        self.death = death


class Process(Protocol):
    """One running invocation of a server.

    The two descriptors belong to the caller from the start on: whoever holds the process closes
    them exactly once, `stdin_fd` first when the server is to end.
    """

    invocation: str  # unique per start: 32 hex digits, as systemd's INVOCATION_ID
    pid: int
    stdin_fd: int  # the caller writes here
    stdout_fd: int  # the caller reads here
    redact: Callable[[str], str]  # makes a text of the server's fit to be shown

    async def ended(self) -> Death:
        """Wait until the process is gone and tell how; never raises, may be awaited many times.

        Not bounded: the caller bounds it; once the process has exited, each runtime bounds what it
        takes to learn the cause. Cancelling the wait leaves the process alone.
        """
        ...

    def has_exited(self) -> bool:
        """Whether the process is gone, though its cause may not be known yet."""
        ...

    async def stop(self, grace: float) -> Death:
        """End it and everything it started: wait `grace` seconds, then SIGTERM, then SIGKILL.

        The caller has closed stdin before. Returns when the main process is gone, at the latest
        KILL_AFTER seconds after the grace; idempotent.
        """
        ...

    # For a runtime whose processes outlive the proxy; to others these say nothing.

    def greeted(self, hello: dict[str, Any]) -> None:
        """It is initialized, with this result."""
        ...

    def tear(self, *, torn: bool) -> None:
        """Its stdin holds, or no longer holds, a line that is not whole."""
        ...

    def leave(self, rest: bytes | None) -> None:
        """The proxy ends: `rest` of a line has been read; None: nobody can go on with it."""
        ...


@dataclass(frozen=True, slots=True)
class Adopted:
    """A process that an earlier proxy has started, and what is to be known of it.

    Attributes:
        hello: its initialize result.
        rest: what it had said of a line that is not whole yet.
        torn: whether it may have been given a part of a line only.
        first_number: no id from here on was ever used toward it.
        current: whether it was started from the definition as it is now.
    """

    process: Process
    hello: dict[str, Any]
    rest: bytes
    torn: bool
    first_number: int
    current: bool


class Runtime(Protocol):
    """Starts servers. One object for a proxy's whole life."""

    name: str

    @property
    def dropped_lines(self) -> Mapping[str, int]:
        """Lines of stderr beyond a server's budget, by instance; they reached no log."""
        ...

    @property
    def unread(self) -> int:
        """Files of `usage` that were there and could not be read, so far."""
        ...

    async def adopt(self, spec: ServerSpec) -> Adopted | None:
        """The server's process from an earlier proxy, if it still runs; bounded."""
        ...

    async def start(self, spec: ServerSpec, command: Command, slot: str = "") -> Process:
        """Start the server's process and hand over its pipes.

        `slot` names one of several processes of an isolated server; each has a directory that
        ends with it.

        Bounded by the time that exec takes; never waits for the server to answer anything.

        Raises:
            StartError: it could not be started. Nothing is left behind.
            CallError: it may not be started now, which is no crash.
        """
        ...

    async def usage(self, running: Iterable[str]) -> Mapping[str, Usage]:
        """What these servers' processes use, by instance, as far as it can be told; bounded."""
        ...

    def refusal(self, instance: str) -> CallError | None:
        """Why `start` would not even try, as far as is known without asking anybody."""
        ...

    def watch(self, instances: Iterable[str], tell: Callable[[str, News], None]) -> None:
        """Tell what others do to exactly these from now on; the last call counts."""
        ...

    def view(self, spec: ServerSpec) -> dict[str, Any]:
        """The part of a definition whose change needs a new process."""
        ...

    def unkept(self, spec: ServerSpec) -> list[str]:
        """Name the parts of a definition that this runtime cannot keep, a sentence each."""
        ...

    async def close(self) -> None:
        """End every process that is still there, bounded; used once at the proxy's end."""
        ...
