"""The proxy as a service of systemd: sockets that it is given, and words that it says (sd_notify(3))."""

import asyncio
import os
import socket
from contextlib import suppress

FIRST = 3  # SD_LISTEN_FDS_START, sd_listen_fds(3)


def given_sockets() -> dict[str, socket.socket]:
    """The listening sockets from systemd by FileDescriptorName=; none when it gave none.

    The variables are taken out of the environment: they are for this process alone.
    """
    pid, count, names = (
        os.environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")
    )
    if pid != str(os.getpid()) or not count.isdecimal():
        return {}
    found = {}
    for number, name in zip(range(FIRST, FIRST + int(count)), names.split(":"), strict=False):
        os.set_inheritable(number, False)
        found[name] = socket.socket(fileno=number)
        found[name].setblocking(False)
    return found


class Notifier:
    """Tells systemd of the proxy's state, and that it lives; without systemd it does nothing."""

    def __init__(self) -> None:
        self._address = os.environ.pop("NOTIFY_SOCKET", "")
        usec = os.environ.pop("WATCHDOG_USEC", "")
        self._every = int(usec) / 2e6 if usec.isdecimal() else 0.0
        self._task: asyncio.Task[None] | None = None

    def ready(self) -> None:
        """From now on requests are served; the watchdog is fed by the event loop itself."""
        self._say("READY=1")
        if self._every:
            self._task = asyncio.create_task(self._live(), name="watchdog")

    def stopping(self) -> None:
        self._say("STOPPING=1")
        if self._task is not None:
            self._task.cancel()

    async def _live(self) -> None:
        while True:
            self._say("WATCHDOG=1")
            await asyncio.sleep(self._every)

    def _say(self, text: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
        # While systemd executes itself anew nobody listens.
        with suppress(OSError), socket.socket(socket.AF_UNIX, kind) as to:
            to.sendto(text.encode(), address)
