"""The only module that knows dbus-next and dbus-fast: a connection made with either.

dbus-fast is the maintained fork of dbus-next with the same interface. What differs, and what
dbus-next 0.2.3 (the last one) does wrong, is made up for here; nothing of them leaves this package.
"""

import asyncio
import socket
from typing import Any
from urllib.parse import quote

LIBRARIES = ("dbus_fast", "dbus_next")  # the first that is installed is used
_LONGEST_AUTH_LINE = 4096  # bytes; the D-Bus specification knows only lines of a few words


def load(name: str | None = None) -> Any:
    """Return the library of that name, or the first of LIBRARIES that is installed.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    if name is not None and name not in LIBRARIES:
        raise ModuleNotFoundError(f"{name!r}: allowed is {', '.join(LIBRARIES)}")
    if name != "dbus_next":
        try:
            import dbus_fast.aio

            return dbus_fast
        except ModuleNotFoundError:
            if name is not None:
                raise
    import dbus_next

    return dbus_next


async def connection(library: Any, path: str) -> Any:
    """Return a message bus for the socket at `path`, still to be connected.

    Raises:
        OSError: nobody listens there (with dbus-fast only its `connect` finds out).
    """
    if library.__name__ == "dbus_fast":
        return library.aio.MessageBus(bus_address=_address(path))
    # It would connect by itself, with a blocking call, and leave the socket open if that fails.
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        await asyncio.get_running_loop().sock_connect(connected, path)
        return _next_bus(connected, _address(path))
    except BaseException:
        connected.close()
        raise


def _address(path: str) -> str:
    return f"unix:path={quote(path)}"


def _next_bus(connected: socket.socket, address: str) -> Any:
    from dbus_next.aio.message_bus import MessageBus
    from dbus_next.errors import AuthError

    class Bus(MessageBus):
        def _setup_socket(self) -> None:
            self._sock = connected
            self._stream = connected.makefile("rwb")
            self._fd = connected.fileno()

        async def connect(self) -> MessageBus:
            try:
                return await super().connect()
            except BaseException:
                self._method_return_handlers.clear()  # nobody waits for its Hello any more
                self._finalize()
                raise

        async def _auth_readline(self) -> str:
            # The original one never gives the event loop back when the bus ends in here.
            line = b""
            while not line.endswith(b"\r\n"):
                byte = await asyncio.get_running_loop().sock_recv(self._sock, 1)
                if not byte or len(line) > _LONGEST_AUTH_LINE:
                    raise AuthError("the bus ended while it let us in")
                line += byte
            return line[:-2].decode()

        def _finalize(self, err: Exception | None = None) -> None:
            super()._finalize(err)  # type: ignore[no-untyped-call]
            # The original one leaves both to the garbage collector.
            self._stream.close()
            self._sock.close()

    return Bus(bus_address=address)
