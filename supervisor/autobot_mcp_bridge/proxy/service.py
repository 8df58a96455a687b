"""The proxy as a service of systemd: what it is given (sd_listen_fds(3)), what it says (sd_notify(3))."""

import array
import asyncio
import os
import socket
import stat
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

FIRST = 3  # SD_LISTEN_FDS_START, sd_listen_fds(3)
# systemd reads what it is told within this, or is away for longer than anybody waits.
FLUSH_WITHIN = 5.0


@dataclass(slots=True)
class Given:
    """What this process has from systemd.

    Attributes:
        sockets: the listening ones by FileDescriptorName=.
        stored: what the process before has stored, by name; whoever takes one closes it.
    """

    sockets: dict[str, socket.socket] = field(default_factory=dict)
    stored: dict[str, list[int]] = field(default_factory=dict)


def given() -> Given:
    """Take over the descriptors from systemd; none when it gave none.

    The variables are taken out of the environment: they are for this process alone.
    """
    pid, count, names = (
        os.environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")
    )
    found = Given()
    if pid != str(os.getpid()) or not count.isdecimal():
        return found
    for number, name in zip(range(FIRST, FIRST + int(count)), names.split(":"), strict=False):
        os.set_inheritable(number, False)
        if stat.S_ISSOCK(os.fstat(number).st_mode):
            found.sockets[name] = socket.socket(fileno=number)
            found.sockets[name].setblocking(False)
        else:
            found.stored.setdefault(name, []).append(number)
    return found


class Notifier:
    """Tells systemd of the proxy's state, and gives it descriptors to hold.

    Implements `Store` of supervision/journal.py; without systemd it does nothing.
    """

    def __init__(self) -> None:
        self._address = os.environ.pop("NOTIFY_SOCKET", "")
        usec = os.environ.pop("WATCHDOG_USEC", "")
        self._every = int(usec) / 2e6 if usec.isdecimal() else 0.0
        self._task: asyncio.Task[None] | None = None
        self._socket: socket.socket | None = None
        # What systemd had no room for, in order, with descriptors of our own; as many as there
        # are changes of channels while it is busy.
        self._waiting: deque[tuple[bytes, tuple[int, ...]]] = deque()
        self._all_said = asyncio.Event()

    def ready(self) -> None:
        """From now on requests are served; the watchdog is fed by the event loop itself."""
        self._say("READY=1")
        if self._every:
            self._task = asyncio.create_task(self._live(), name="watchdog")

    def stopping(self) -> None:
        self._say("STOPPING=1")

    async def close(self) -> None:
        """Say the rest, bounded; nothing is said after that."""
        if self._waiting:
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_WITHIN):
                    await self._all_said.wait()
        if self._task is not None:
            self._task.cancel()
        if self._socket is not None:
            asyncio.get_running_loop().remove_writer(self._socket)
            self._socket.close()
            self._socket = None
        self._address = ""

    def store(self, name: str, *descriptors: int) -> None:
        """Have systemd hold duplicates until they are removed, or their other end is closed."""
        self._say(f"FDSTORE=1\nFDNAME={name}", *descriptors)

    def remove(self, name: str) -> None:
        self._say(f"FDSTOREREMOVE=1\nFDNAME={name}")

    async def _live(self) -> None:
        while True:
            self._say("WATCHDOG=1")
            await asyncio.sleep(self._every)

    def _say(self, text: str, *descriptors: int) -> None:
        if not self._address:
            return
        if self._waiting or not self._sent(text.encode(), descriptors):
            own = tuple(os.dup(descriptor) for descriptor in descriptors)
            self._waiting.append((text.encode(), own))
            self._all_said.clear()
            if self._socket is not None:
                asyncio.get_running_loop().add_writer(self._socket, self._go_on)

    def _go_on(self) -> None:
        while self._waiting and self._sent(*self._waiting[0]):
            _, own = self._waiting.popleft()
            for descriptor in own:
                os.close(descriptor)
        if not self._waiting:
            self._all_said.set()
            if self._socket is not None:
                asyncio.get_running_loop().remove_writer(self._socket)

    def _sent(self, text: bytes, descriptors: tuple[int, ...]) -> bool:
        """Whether it is done with: said, or nobody is there to hear it."""
        try:
            if self._socket is None:
                address = self._address
                address = "\0" + address[1:] if address[0] == "@" else address
                self._socket = socket.socket(
                    socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
                )
                self._socket.connect(address)
            rights = array.array("i", descriptors)
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if descriptors else []
            self._socket.sendmsg([text], ancillary)
        except BlockingIOError:
            return False
        except OSError:
            if self._socket is not None:  # the next word tries anew
                with suppress(RuntimeError):  # outside a loop none has been added
                    asyncio.get_running_loop().remove_writer(self._socket)
                self._socket.close()
                self._socket = None
        return True
