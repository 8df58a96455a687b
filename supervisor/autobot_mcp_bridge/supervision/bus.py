"""The bus of systemd, in types of our own.

A `Bus` keeps one connection, and makes a new one whenever that ends. Calls have deadlines; what
comes back and what is signalled are plain Python values, and reach the owner in the order in which
systemd sent them. After each connect the owner is told to read everything once: what was signalled
in between is lost (measured with systemd 252 and 257, dbus-daemon restarted).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from autobot_mcp_bridge.model.errors import BridgeError
from autobot_mcp_bridge.supervision import bus_library

SYSTEM_BUS = "/run/dbus/system_bus_socket"
SYSTEMD = "org.freedesktop.systemd1"
DRIVER = "org.freedesktop.DBus"
# Connect, authenticate, subscribe: milliseconds, unless the machine is about to stand still.
CONNECT_TIMEOUT = 10.0
# A daemon-reload with 500 sockets and 100 services takes 2.2 s (measured), and nothing is answered
# in the meantime.
CALL_TIMEOUT = 15.0
CLOSE_TIMEOUT = 1.0  # an end that we ask for takes one turn of the event loop
FIRST_PAUSE = 0.1  # dbus-daemon is restarted within milliseconds
LONGEST_PAUSE = 5.0
MOST_PENDING = 10_000  # calls without an answer; two for each of some thousand units

log = logging.getLogger(__name__)


class BusError(BridgeError):
    """systemd or the bus refused a call; the message has their words."""


class BusUnavailableError(BusError):
    """There is no connection to the bus, it has ended, or no answer came in time."""

    exit_code = 69  # EX_UNAVAILABLE


class NoSuchUnitError(BusError):
    """There is no unit of this name, it is not loaded, or its invocation is over."""


class AccessDeniedError(BusError):
    """The polkit rule does not allow this user to do that with that unit."""

    exit_code = 77  # EX_NOPERM


_ERRORS: dict[str, type[BusError]] = {
    # systemd's bus-common-errors.h
    f"{SYSTEMD}.NoSuchUnit": NoSuchUnitError,
    f"{SYSTEMD}.LoadFailed": NoSuchUnitError,
    f"{SYSTEMD}.NoUnitForInvocationID": NoSuchUnitError,
    f"{DRIVER}.Error.UnknownObject": NoSuchUnitError,
    f"{DRIVER}.Error.AccessDenied": AccessDeniedError,
    f"{DRIVER}.Error.InteractiveAuthorizationRequired": AccessDeniedError,
    f"{DRIVER}.Error.ServiceUnknown": BusUnavailableError,
    f"{DRIVER}.Error.NameHasNoOwner": BusUnavailableError,
    f"{DRIVER}.Error.NoReply": BusUnavailableError,
    f"{DRIVER}.Error.Disconnected": BusUnavailableError,
}


@dataclass(frozen=True, slots=True)
class Call:
    """A method call; `arguments` match the D-Bus signature."""

    path: str
    interface: str
    member: str
    signature: str = ""
    arguments: Sequence[Any] = ()
    destination: str = SYSTEMD

    def __str__(self) -> str:
        return f"{self.member} of {self.path}"


@dataclass(frozen=True, slots=True)
class Signal:
    """What systemd signalled; variants on the first level of the body are taken apart."""

    path: str
    interface: str
    member: str
    body: tuple[Any, ...]


class Owner(Protocol):
    """Whom a bus serves; nothing here may wait."""

    def connected(self) -> None:
        """A connection is there and signals come: read everything once."""

    def disconnected(self) -> None: ...

    def signalled(self, signal: Signal) -> None: ...


class _Pending(NamedTuple):
    call: Call
    then: Callable[[tuple[Any, ...]], None]
    failed: Callable[[BusError], None]
    timer: asyncio.TimerHandle


class Bus:
    """A connection to the bus of systemd, for as long as `run` runs.

    Args:
        owner: is told about connections and signals.
        rules: what to be told, as D-Bus match rules without the sender, which is systemd.
        wants: tells for the path of a signal whether the owner wants it; called for each.
        path: the bus's socket.
        library: one of bus_library.LIBRARIES; the first that is installed if it is None.

    Raises:
        BusUnavailableError: the library is not installed.
    """

    def __init__(
        self,
        owner: Owner,
        *,
        rules: Sequence[str],
        wants: Callable[[str], bool] = bool,
        path: str = SYSTEM_BUS,
        library: str | None = None,
    ) -> None:
        try:
            self._library = bus_library.load(library)
        except ModuleNotFoundError as error:
            raise BusUnavailableError(f"no library for D-Bus is installed: {error}") from error
        self._owner = owner
        self._rules = [f"type='signal',sender='{SYSTEMD}',{rule}" for rule in rules]
        self._wants = wants
        self._path = path
        self._types = self._library.MessageType
        self._connection: Any = None
        self._ended: asyncio.Task[None] | None = None
        self._pending: dict[int, _Pending] = {}
        self._systemd = ""  # the unique name of systemd's own connection
        self._ready = False

    @property
    def connected(self) -> bool:
        """Whether systemd can be asked: it leaves the bus while it executes itself anew."""
        return self._ready and bool(self._systemd)

    async def run(self) -> None:
        """Connect, and connect again whenever the connection ends; returns only by cancelling."""
        pause, loop = FIRST_PAUSE, asyncio.get_running_loop()
        try:
            while True:
                try:
                    async with asyncio.timeout(CONNECT_TIMEOUT):
                        ended = await self._connect()
                        await self._subscribe()
                except (BusError, OSError, TimeoutError) as error:
                    level = logging.WARNING if pause == LONGEST_PAUSE else logging.INFO
                    why = str(error) or "no answer in time"
                    log.log(level, "no bus at %s, again in %g s: %s", self._path, pause, why)
                else:
                    began = loop.time()
                    await self._served(ended)
                    # A bus that ends each connection at once is none that has come back.
                    if loop.time() - began > LONGEST_PAUSE:
                        pause = FIRST_PAUSE
                await self._close()
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            await self._close()

    async def _served(self, ended: "asyncio.Task[None]") -> None:
        self._ready = True
        self._owner.connected()
        try:
            await asyncio.wait({ended})
            log.warning("the bus at %s has ended", self._path)
        finally:
            self._ready = False
            self._owner.disconnected()

    async def call(
        self,
        call: Call,
        then: Callable[[tuple[Any, ...]], None] | None = None,
    ) -> tuple[Any, ...]:
        """Return the answer's values, and give them to `then` in their order among the signals.

        The await itself goes on only after later signals that came with the same read.

        Raises:
            BusUnavailableError: no connection, or no answer within CALL_TIMEOUT.
            NoSuchUnitError, AccessDeniedError, BusError: what systemd said.
        """
        future: asyncio.Future[tuple[Any, ...]] = asyncio.get_running_loop().create_future()

        def answered(values: tuple[Any, ...]) -> None:
            if not future.done():
                future.set_result(values)
                if then is not None:
                    then(values)

        def failed(error: BusError) -> None:
            if not future.done():
                future.set_exception(error)

        self.post(call, answered, failed)
        return await future

    def post(
        self,
        call: Call,
        then: Callable[[tuple[Any, ...]], None],
        failed: Callable[[BusError], None],
    ) -> None:
        """Send a call; exactly one of the two is called, in its order among the signals."""
        # One that has just ended has closed its descriptor, whose number may be another's by now.
        if self._connection is None or not self._connection.connected:
            failed(BusUnavailableError(f"no connection to the bus at {self._path}"))
            return
        if len(self._pending) >= MOST_PENDING:
            failed(BusUnavailableError(f"{MOST_PENDING} calls without an answer"))
            return
        message = self._library.Message(
            destination=call.destination,
            path=call.path,
            interface=call.interface,
            member=call.member,
            signature=call.signature,
            body=list(call.arguments),
            serial=self._connection.next_serial(),
        )
        timer = asyncio.get_running_loop().call_later(CALL_TIMEOUT, self._late, message.serial)
        self._pending[message.serial] = _Pending(call, then, failed, timer)
        try:
            # What goes wrong in writing ends the connection, and with it the call.
            self._connection.send(message).add_done_callback(_ignore)
        except (OSError, ValueError) as error:
            # dbus-fast writes at once, and if that ends it, waits for a descriptor it has closed.
            if self._pending.pop(message.serial, None) is not None:
                timer.cancel()
                failed(BusUnavailableError(f"the bus ended during {call}: {error}"))

    def _late(self, serial: int) -> None:
        late = self._pending.pop(serial)
        late.failed(BusUnavailableError(f"no answer to {late.call} within {CALL_TIMEOUT:g} s"))

    async def _connect(self) -> "asyncio.Task[None]":
        bus = self._connection = await bus_library.connection(self._library, self._path)
        self._systemd = ""
        bus.add_message_handler(self._received)
        # Before it is connected: an end in there is told in the same way.
        self._ended = ended = asyncio.create_task(bus.wait_for_disconnect())
        ended.add_done_callback(lambda _: self._fail_pending())
        try:
            await bus.connect()
        except EOFError as error:
            raise BusUnavailableError("it ended the connection") from error
        except self._library.AuthError as error:
            raise BusUnavailableError(f"it does not let us in: {error}") from error
        return ended

    async def _subscribe(self) -> None:
        """Ask for the signals before anything is read, so that none falls in between."""
        # Anybody on the bus may send a signal to our connection, whatever we asked for.
        owner = f"sender='{DRIVER}',member='NameOwnerChanged',arg0='{SYSTEMD}'"
        for rule in (f"type='signal',{owner}", *self._rules):
            await self.call(_driver("AddMatch", rule))
        (name,) = await self.call(_driver("GetNameOwner", SYSTEMD))
        self._systemd = self._systemd or name  # what was signalled is never older
        await self.call(_SUBSCRIBE)

    def _received(self, message: Any) -> None:
        kind = message.message_type
        if kind is self._types.SIGNAL:
            self._signalled(message)
        elif kind is not self._types.METHOD_CALL:
            pending = self._pending.pop(message.reply_serial, None)
            if pending is None:
                return
            pending.timer.cancel()
            if kind is self._types.ERROR:
                words = message.body[0] if message.body else message.error_name
                pending.failed(_error(message.error_name)(f"{pending.call}: {words}"))
            else:
                pending.then(tuple(_plain(value) for value in message.body))

    def _signalled(self, message: Any) -> None:
        if message.sender == DRIVER:
            if message.member == "NameOwnerChanged" and message.body[0] == SYSTEMD:
                self._systemd = message.body[2]
                if self._ready and self._systemd:  # systemd was executed anew
                    # It knows its subscribers from before; if so, it says no, and all is well.
                    self.post(_SUBSCRIBE, _pass, _pass)
                    self._owner.connected()
        elif message.sender == self._systemd and self._ready and self._wants(message.path):
            body = tuple(_plain(value) for value in message.body)
            self._owner.signalled(Signal(message.path, message.interface, message.member, body))

    async def _close(self) -> None:
        bus, self._connection = self._connection, None
        ended, self._ended = self._ended, None
        if bus is not None and ended is not None:
            if bus.connected:
                bus.disconnect()
                await asyncio.wait({ended}, timeout=CLOSE_TIMEOUT)
            ended.cancel()
            await asyncio.wait({ended}, timeout=CLOSE_TIMEOUT)
            _ignore(ended)
        self._fail_pending()

    def _fail_pending(self) -> None:
        for pending in list(self._pending.values()):
            pending.timer.cancel()
            pending.failed(BusUnavailableError(f"the bus ended during {pending.call}"))
        self._pending.clear()


_SUBSCRIBE = Call("/org/freedesktop/systemd1", f"{SYSTEMD}.Manager", "Subscribe")


def _pass(_answer: object) -> None: ...


def _error(name: str) -> type[BusError]:
    if name.startswith(f"{DRIVER}.Error.Spawn."):  # nothing can start systemd
        return BusUnavailableError
    return _ERRORS.get(name, BusError)


def _driver(member: str, argument: str) -> Call:
    return Call("/org/freedesktop/DBus", DRIVER, member, "s", (argument,), DRIVER)


def _plain(value: Any) -> Any:
    """Take variants apart, also those that are a mapping's values."""
    if isinstance(value, dict):
        return {key: getattr(item, "value", item) for key, item in value.items()}
    return getattr(value, "value", value)


def _ignore(done: "asyncio.Future[Any]") -> None:
    """Take note of an exception that is known from elsewhere."""
    if done.done() and not done.cancelled():
        done.exception()
