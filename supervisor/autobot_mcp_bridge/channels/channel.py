"""One process's channel: many callers share two pipes, each gets its own answer.

Private ids are integers that never repeat, so no client's id can meet another's (D1), and the
private id doubles as the progress token toward the server. The channel knows nothing of sessions
or HTTP: a call is a slot that is woken when something for it has arrived.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.backlog import Backlog, Room
from autobot_mcp_bridge.channels.call import Call
from autobot_mcp_bridge.channels.framing import LineSplitter, Oversized
from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.channels.pipes import Pipes
from autobot_mcp_bridge.model.errors import METHOD_NOT_FOUND, CallError, Cause
from autobot_mcp_bridge.model.server import Caps
from autobot_mcp_bridge.runtimes.base import Adopted, Process

# Progress extends a call's deadline, but never beyond this many times the deadline (H6).
MAX_EXTENSION = 60
# Notifications that wait for one call's stream, and bytes of those of all calls together.
MAX_EVENTS = 256
EVENT_BYTES = 64 << 20
# After so long without a byte a stream gets a comment (A17 asks for 15-25 s).
KEEP_ALIVE = 15.0
# The ticker looks at deadlines this often; a shorter deadline makes it look more often.
TICK = 1.0
TICK_MIN = 0.05
# A pipe takes so much at once or not at all (pipe(7)); of more it may take a part.
PIPE_BUF = 4096
# Lines that are looked at before others get their turn: a turn of the loop, 10-20 us a line.
LINES_A_TURN = 100
# What a server hears that asks a client. One that wants to ask is for sessions: isolated.
NOBODY_ANSWERS = (
    "no client is there to answer this: a shared server can ask none, an isolated one what its "
    "client has declared"
)
# How much of the first stray line is kept for a start that fails.
NOISE_SAMPLE = 120


log = logging.getLogger(__name__)


class Channel:
    """The proxy's side of one running process."""

    def __init__(
        self,
        process: Process,
        caps: Caps,
        *,
        attention: asyncio.Event,
        on_message: Callable[[dict[str, Any], bytes], None],
        on_request: Callable[[dict[str, Any], bytes], bool] = lambda _message, _line: False,
        on_dropped: Callable[[str], None],
        adopted: Adopted | None = None,
    ) -> None:
        self.process = process
        self.ended = asyncio.Event()
        # Set when the channel's keeper should look: the end, or a deadline that passed.
        self.attention = attention
        self.pending: dict[int, Call] = {}
        self._standing: dict[int, Callable[[int], None]] = {}
        self.silent_deadlines = 0  # in a row, while nothing at all was heard
        self.noise = ""
        self.first_answer: Callable[[], None] | None = None  # called once, at the next answer
        self.last_used = asyncio.get_running_loop().time()
        self._caps = caps
        self._numbers = itertools.count(1 if adopted is None else adopted.first_number)
        self._splitter = LineSplitter(caps.line)
        if adopted is not None:
            self._splitter.feed(adopted.rest)
        self._torn = adopted is not None and adopted.torn
        self._room = Room(max(EVENT_BYTES, 2 * caps.line))
        self._on_message = on_message
        self._on_request = on_request
        self._on_dropped = on_dropped
        self._pipes: Pipes | None = None
        self._ticker: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._heard = self.last_used
        self._left = False  # a later proxy reads on
        self._lines: list[bytes | Oversized] = []  # read, and not yet looked at, last one first

    @classmethod
    async def open(cls, process: Process, caps: Caps, **callbacks: Any) -> Self:
        channel = cls(process, caps, **callbacks)
        channel._pipes = await Pipes.open(
            process.stdin_fd,
            process.stdout_fd,
            on_data=channel._feed,
            on_end=channel._end,
            on_deaf=channel._deafened,
        )
        if channel._torn:
            channel._pipes.write(b"\n")  # ends what the proxy before could not
            channel._mind_tear(channel._pipes)
        return channel

    @property
    def usable(self) -> bool:
        """Whether a request can be sent: neither of the two pipes has ended."""
        return self._pipes is not None and self._pipes.writable and not self.ended.is_set()

    # ---- toward the server ----

    def request(self, message: dict[str, Any], timeout: float, owner: object = None) -> Call:
        """Send a request and return its call; the message is changed in place.

        Raises:
            CallError: the server does not read, or the message cannot be written.
        """
        number = next(self._numbers)
        call = Call(number, timeout, self._loop.time(), owner)
        message["id"] = number
        params = message.get("params")
        if isinstance(params, dict) and isinstance(meta := params.get("_meta"), dict):
            token = meta.get("progressToken")
            if token is not None:
                if isinstance(token, bool) or not isinstance(token, int | str):
                    raise CallError(Cause.BAD_TEXT, "progressToken must be a string or an integer")
                if isinstance(token, str) and len(token) > jsonrpc.MAX_ID:
                    text = f"progressToken must have at most {jsonrpc.MAX_ID} characters"
                    raise CallError(Cause.BAD_TEXT, text)
                call.token = token
                meta["progressToken"] = number
        call.size = self._write(message)
        self.pending[number] = call
        self.last_used = call.began
        if self._ticker is None:
            self._arm(timeout)
        return call

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification; one that cannot be sent is dropped."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.pass_on(message)

    def pass_on(self, message: dict[str, Any]) -> None:
        """Send what needs no id of ours: an answer, a notification; dropped where it cannot be."""
        try:
            self._write(message)
        except CallError:
            self._on_dropped("stdin_full")

    def cancel(self, call: Call, reason: str) -> None:
        """Give a call up and tell the server so, by its own id for it (D2, E14)."""
        if self.pending.pop(call.number, None) is not None:
            self.notify("notifications/cancelled", {"requestId": call.number, "reason": reason})
            call.error = CallError(Cause.CANCELLED, f"the call was cancelled: {reason}")
            call.ring()

    def stand(self, message: dict[str, Any], ended: Callable[[int], None]) -> int:
        """Send a request that nobody waits for and that has no deadline; returns its id.

        `ended` is called with that when the server answers it.

        Raises:
            CallError: as `request`.
        """
        number = message["id"] = next(self._numbers)
        self._write(message)
        self._standing[number] = ended
        return number

    def stands(self, number: int) -> bool:
        """Whether such a request has had no answer yet."""
        return number in self._standing

    def stand_down(self, number: int) -> None:
        """Tell the server that a request which stands is over; idempotent."""
        if self._standing.pop(number, None) is not None:
            self.notify("notifications/cancelled", {"requestId": number, "reason": "replaced"})

    def again(self, call: Call, message: dict[str, Any]) -> None:
        """Send a request for a call that had an answer nobody has seen; its time begins anew.

        Raises:
            CallError: as `request`.
        """
        number = message["id"] = next(self._numbers)
        if call.token is not None:
            message["params"]["_meta"]["progressToken"] = number
        self._write(message)
        self.pending.pop(call.number, None)
        call.number = number
        self._wait(call, call.timeout, parked=False)

    def park(self, call: Call, patience: float) -> None:
        """Keep a call open while its client is asked something, for so many seconds."""
        self._wait(call, patience, parked=True)

    def go_on(self, call: Call) -> None:
        """Wait for the server again: its client has answered."""
        self._wait(call, call.timeout, parked=False)

    def swap(self, call: Call, result: dict[str, Any], patience: float) -> Call:
        """Answer a call with a result of our own; the server's work for it goes on in another."""
        held = Call(call.number, call.timeout, call.began, call.owner)
        self._wait(held, patience, parked=True)
        call.answer = jsonrpc.rebuilt({"jsonrpc": "2.0", "id": call.number, "result": result})
        call.ring()
        return held

    def resume(self, call: Call, params: dict[str, Any]) -> None:
        """Wait for a call's answer again; its client is another request, with `params`."""
        token = params.get("_meta", {}).get("progressToken")
        if isinstance(token, int) or (isinstance(token, str) and len(token) <= jsonrpc.MAX_ID):
            call.token = token
        if not call.done:
            self.go_on(call)

    def fail_call(self, call: Call, error: CallError) -> None:
        """End one open call with an error of ours, and tell the server so."""
        self.cancel(call, str(error))
        call.error = error

    def _wait(self, call: Call, timeout: float, *, parked: bool) -> None:
        call.parked = parked
        call.began = self._loop.time()
        call.deadline = call.began + timeout
        self.pending[call.number] = call
        if self._ticker is None:
            self._arm(timeout)

    def forget(self, call: Call) -> None:
        """Wait for its answer no more, and say nothing of it to the server."""
        self.pending.pop(call.number, None)

    def _write(self, message: dict[str, Any]) -> int:
        """Send it; how many bytes it has."""
        if self._pipes is None or not self.usable:
            raise CallError(Cause.CRASHED, "the server has just ended")
        line = _text(message)
        waiting = self._pipes.waiting
        if waiting + len(line) > self._caps.queue:
            raise CallError(
                Cause.QUEUE_FULL, "the server does not read its stdin fast enough", retry_after=1
            )
        self._pipes.write(line + b"\n")
        if self._torn or waiting + len(line) >= PIPE_BUF:
            self._mind_tear(self._pipes)
        return len(line)

    def _mind_tear(self, pipes: Pipes) -> None:
        """Note whether a proxy that is killed now leaves a part of a line in the pipe."""
        torn = pipes.waiting > 0
        if torn != self._torn:
            self._torn = torn
            self.process.tear(torn=torn)

    # ---- from the server ----

    def _feed(self, chunk: bytes) -> None:
        lines = self._splitter.feed(chunk)
        if len(lines) <= LINES_A_TURN:
            for line in lines:
                self._take(line)
            return
        # A flood waits in its pipe, while the other servers get their turns.
        if self._pipes is not None:
            self._pipes.pause()
        self._lines = lines[::-1]
        self._take_some()

    def _take_some(self) -> None:
        for _ in range(min(LINES_A_TURN, len(self._lines))):
            self._take(self._lines.pop())
        if self._lines:
            self._loop.call_soon(self._take_some)
        elif self._pipes is not None and not (self._left or self.ended.is_set()):
            self._pipes.resume()

    def _take(self, line: bytes | Oversized) -> None:
        try:
            self._understand(line)
        except Exception:
            # The top of what a stranger's line can reach: it costs that line alone.
            log.exception("fault while reading a server's line")
            self._on_dropped("not_json_rpc")

    def _understand(self, line: bytes | Oversized) -> None:
        if isinstance(line, Oversized):
            self._oversized(line)
            return
        message = jsonrpc.parse(line)
        if message is None:
            self._noise(line)
            return
        self._heard = self._loop.time()
        self.silent_deadlines = 0
        if isinstance(message, Answer):
            self._answered(message)
        elif "id" in message:
            self._asked(message, line)
        else:
            self._notified(message, line)

    def _answered(self, answer: Answer) -> None:
        call = self.pending.pop(answer.number, None)
        self.last_used = self._heard
        if self.first_answer is not None:
            self.first_answer()
            self.first_answer = None
        if call is None:
            ended = self._standing.pop(answer.number, None)
            if ended is None:
                self._on_dropped("late_answer")
            else:
                ended(answer.number)
            return
        if call.intercept is not None and call.intercept(answer):
            return
        call.answer = answer
        call.ring()

    def _noise(self, line: bytes) -> None:
        self._on_dropped("not_json_rpc")
        if not self.noise:
            self.noise = line[:NOISE_SAMPLE].decode("utf-8", "replace")

    def _oversized(self, line: Oversized) -> None:
        """Fail the one call whose answer was too large (H5, B1)."""
        self._on_dropped("too_long")
        ends = line.head + b" " + line.tail
        answer = jsonrpc.locate(ends)
        call = self.pending.pop(answer.number, None) if answer is not None else None
        if call is not None:
            call.error = CallError(
                Cause.ANSWER_TOO_LARGE,
                f"the answer has {line.size} bytes; caps.line allows {self._caps.line}",
                data={"bytes": line.size, "cap": self._caps.line},
            )
            call.ring()

    def _asked(self, message: dict[str, Any], line: bytes) -> None:
        """A request of the server's: where no client gets it, ping alone is answered (D3, H8)."""
        if self._on_request(message, line):
            return
        if message["method"] == "ping":
            self.pass_on({"jsonrpc": "2.0", "id": message["id"], "result": {}})
            return
        error = {"code": METHOD_NOT_FOUND, "message": NOBODY_ANSWERS}
        self.pass_on({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def _notified(self, message: dict[str, Any], line: bytes) -> None:
        if message["method"] != "notifications/progress":
            self._on_message(message, line)
            return
        params = message.get("params")
        number = params.get("progressToken") if isinstance(params, dict) else None
        call = self.pending.get(number) if isinstance(number, int) else None
        if call is None or call.token is None or not isinstance(params, dict):
            self._on_dropped("stray_progress")
            return
        if not call.parked:
            call.deadline = min(
                self._loop.time() + call.timeout, call.began + MAX_EXTENSION * call.timeout
            )
        params["progressToken"] = call.token
        try:
            line = jsonrpc.dumps(message)
        except ValueError:  # nested so deeply that it can be read and not be written
            self._on_dropped("not_json_rpc")
            return
        self.push(call, line)

    def push(self, call: Call, line: bytes) -> None:
        """Put a notification onto a call's own stream, if its client reads one."""
        if not call.streamable:
            self._on_dropped("no_stream")
            return
        if call.events is None:
            dropped = partial(self._on_dropped, "slow_stream")
            call.events = Backlog(MAX_EVENTS, self._room.limit, dropped, self._room)
        call.events.push(line)
        call.ring()

    # ---- time and the end ----

    def _arm(self, timeout: float) -> None:
        delay = min(TICK, max(TICK_MIN, timeout / 4))
        self._ticker = self._loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        """Look at every open call once; one timer for all costs less than a timer a call."""
        self._ticker = None
        now = self._loop.time()
        silent = False
        for call in list(self.pending.values()):
            if now >= call.deadline:
                # The proxy's own questions have short deadlines: a server may be busy for longer.
                ours = call.owner is None or call.parked
                silent = silent or (self._heard < call.began and not ours)
                self._expire(call)
            elif now - call.touched >= KEEP_ALIVE:
                call.touched = now
                call.ring()
        # However many calls passed their deadlines together: that is one sign of silence.
        self.silent_deadlines += silent
        if self.pending:
            self._arm(min(call.timeout for call in self.pending.values()))

    def _expire(self, call: Call) -> None:
        del self.pending[call.number]
        reason = f"no answer within {call.deadline - call.began:g} s"
        self.notify("notifications/cancelled", {"requestId": call.number, "reason": reason})
        who = "client" if call.parked else "server"
        call.error = CallError(Cause.CALL_TIMEOUT, f"the {who} gave {reason}")
        call.ring()
        self.attention.set()

    def fail(self, error: CallError) -> None:
        """End every open call with the error."""
        calls, self.pending = list(self.pending.values()), {}
        for call in calls:
            call.error = error
            call.ring()

    def give_up(self, error: CallError) -> None:
        """As `fail`, and tell the server that nobody waits for its answers."""
        for number in (*self.pending, *self._standing):
            self.notify("notifications/cancelled", {"requestId": number, "reason": str(error)})
        self.fail(error)

    @property
    def flushed(self) -> bool:
        """Whether the server has been given all that was written."""
        return self._pipes is not None and not self._pipes.waiting

    def leave(self) -> None:
        """Read and write no more, without an end: a later proxy goes on here."""
        if self._pipes is not None:
            self._left = True
            self._pipes.pause()
            while self._lines:
                self._take(self._lines.pop())
            whole = self.usable and self.flushed
            if self._torn:
                self._mind_tear(self._pipes)
            self.process.leave(self._splitter.rest if whole else None)

    def _end(self) -> None:
        self.ended.set()
        self.attention.set()

    def _deafened(self) -> None:
        self.attention.set()

    def close_stdin(self) -> None:
        if self._pipes is not None:
            self._pipes.close_stdin()

    def close(self) -> None:
        """Let go of the pipes, and of what was read and not looked at; idempotent."""
        self._lines.clear()
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None
        if self._pipes is not None:
            self._pipes.close()
        self.ended.set()


def _text(message: object) -> bytes:
    """What a client sent, as JSON again; CallError where it is no text that can be written."""
    try:
        return jsonrpc.dumps(message)
    except ValueError as error:
        raise CallError(Cause.BAD_TEXT, f"the message cannot be written: {error}") from None
