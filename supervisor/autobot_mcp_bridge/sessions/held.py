"""What a handshake server wants to know is asked of a modern client (26 basic/patterns/mrtr).

A handshake server sends a request to its client in the middle of a call and waits. The modern
client gets `input_required` as that call's result, and the call is held open toward the server;
the client's retry names it by its `requestState`, carries the answers, and gets the rest of that
very call. The state is opaque and authenticated, holds for one caller of one server, and expires.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.call import Call
from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.model.errors import METHOD_NOT_FOUND, CallError, Cause
from autobot_mcp_bridge.sessions.dialects import params_of
from autobot_mcp_bridge.sessions.rounds import (
    ASKING,
    INPUT_REQUIRED,
    MAX_QUESTIONS,
    PATIENCE,
    QUESTIONS,
)

# Questions that come within so many seconds of the first are asked together.
TOGETHER = 0.05
# Calls of one caller that are held, and bytes of what one of them asks.
MAX_HELD = 64
MAX_ASKED = 1 << 20
PREFIX = "mcpb1."
# Signs the states of this proxy's life: what they name does not outlive it.
_KEY = secrets.token_bytes(32)


@dataclass(eq=False, slots=True)
class HeldCall:
    """A call toward a handshake server that waits for answers of its client.

    Attributes:
        call: the one that the server works on; another for each retry.
        request: digest of what was asked, so that a retry can be nothing else.
        questions: by key: the server's id, and the request as the client gets it.
        asked: how many there were so far; no key comes twice.
        size: bytes of the lines that asked those that are open.
        until: the loop's time until which an answer of the server's is kept for the retry.
    """

    call: Call
    request: str
    identifier: str = ""  # names it in the state that its client has last got
    questions: dict[str, tuple[Any, dict[str, Any]]] = field(default_factory=dict)
    asked: int = 0
    size: int = 0
    asking: asyncio.TimerHandle | None = None
    until: float = 0.0

    def is_over(self, now: float) -> bool:
        """Whether nobody can ask for its answer any more."""
        if not self.call.done:
            return False
        return not self.call.parked or self.call.error is not None or now >= self.until


class Held:
    """The held calls of one caller's process.

    Args:
        whose: server and caller, which a state is bound to.
        features: what the client can be asked.
    """

    def __init__(self, whose: str, features: Mapping[str, Any]) -> None:
        self._whose = whose
        self._features = features
        self._channel: Channel | None = None
        self._held: list[HeldCall] = []

    def begun(self, channel: Channel, call: Call, method: str, request: str) -> None:
        """A call has been sent; its server may ask. `request` is the digest of what was asked for."""
        self._channel = channel
        now = asyncio.get_running_loop().time()
        self._held = [each for each in self._held if not each.is_over(now)]
        if method in ASKING:
            self._held.append(HeldCall(call, request))

    @staticmethod
    def digest(message: dict[str, Any]) -> str:
        """What a request asks for, as a retry of it does, whatever hooks make of it."""
        return _digest(message)

    # ---- from the server ----

    def ask(self, message: dict[str, Any], line: bytes) -> bool:
        """Take a request of the server's for the call that it is most likely of, if it has room.

        It names none; all calls here are of one caller, whose newest one is taken.
        """
        method = message["method"]
        held = next((each for each in reversed(self._held) if not each.call.done), None)
        if method not in QUESTIONS or held is None or self._channel is None:
            return False
        feature = QUESTIONS[method]
        if feature not in self._features:
            error = {"code": METHOD_NOT_FOUND, "message": f"the client has no {feature}"}
            self._channel.pass_on({"jsonrpc": "2.0", "id": message["id"], "error": error})
            self._channel.fail_call(held.call, _lacks(feature))
            return True
        request = {"method": method, "params": params_of(message)}
        size = len(line) + (held.size if held.questions else 0)
        if len(held.questions) >= MAX_QUESTIONS or size > MAX_ASKED:
            return False
        if not _can_be_written(request):
            return False
        held.asked, held.size = held.asked + 1, size
        held.questions[f"{feature}-{held.asked}"] = message["id"], request
        if held.asking is None and not held.call.parked:
            loop = asyncio.get_running_loop()
            held.asking = loop.call_later(TOGETHER, self._interrupt, held)
        return True

    def withdraw(self, message: dict[str, Any]) -> None:
        """The server has cancelled a request of its own."""
        identifier = params_of(message).get("requestId")
        for held in self._held:
            for key, (asked, _) in list(held.questions.items()):
                if asked == identifier:
                    del held.questions[key]

    def _interrupt(self, held: HeldCall) -> None:
        """Answer the client's call with the questions, and hold the server's open."""
        held.asking = None
        if held.call.done or self._channel is None or not held.questions:
            return
        if sum(each.call.parked for each in self._held) >= MAX_HELD:
            error = CallError(Cause.QUEUE_FULL, "too many calls wait for their client's answers")
            self._channel.fail_call(held.call, error)
            return
        held.until = asyncio.get_running_loop().time() + PATIENCE
        held.call = self._channel.swap(held.call, self._result(held), PATIENCE)

    def _result(self, held: HeldCall) -> dict[str, Any]:
        held.identifier = secrets.token_urlsafe(18)
        return {
            "resultType": INPUT_REQUIRED,
            "inputRequests": {key: request for key, (_, request) in held.questions.items()},
            "requestState": self._state(held, time.time() + PATIENCE),
        }

    # ---- from the client ----

    def is_ours(self, params: dict[str, Any]) -> bool:
        state = params.get("requestState")
        return isinstance(state, str) and state.startswith(PREFIX)

    def resume(self, message: dict[str, Any]) -> tuple[Channel, Call] | dict[str, Any]:
        """Go on with the call that a retry names; or the result that asks what is missing.

        Raises:
            CallError: there is no such call, or none any more.
        """
        params = params_of(message)
        held = self._find(params["requestState"], _digest(message))
        channel = self._channel
        if channel is None or not channel.usable:
            raise CallError(Cause.CRASHED, "the process that asked has ended; make the call anew")
        if held.call.error is not None:
            raise held.call.error
        answers = params.get("inputResponses")
        for key, answer in answers.items() if isinstance(answers, dict) else ():
            if key in held.questions and isinstance(answer, dict):
                identifier, _ = held.questions.pop(key)
                channel.pass_on({"jsonrpc": "2.0", "id": identifier, "result": answer})
        if held.questions and not held.call.done:
            return self._result(held)
        held.identifier = ""  # a second retry would take the first one's answer
        if held.call.done:
            self._held.remove(held)
        channel.resume(held.call, params)
        return channel, held.call

    def _find(self, state: str, request: str) -> HeldCall:
        identifier, expires = self._read(state)
        if expires < time.time():
            raise CallError(Cause.INPUT_LATE, "requestState has expired; make the call anew")
        held = next((each for each in self._held if each.identifier == identifier), None)
        if held is None:
            text = "the call that requestState names is over; make the call anew"
            raise CallError(Cause.INPUT_LATE, text)
        if held.request != request:
            raise CallError(Cause.BAD_TEXT, "requestState is of another request")
        return held

    def _state(self, held: HeldCall, expires: float) -> str:
        text = f"{held.identifier}.{int(expires)}"
        mac = base64.urlsafe_b64encode(self._mac(text)).decode()
        return f"{PREFIX}{text}.{mac}"

    def _read(self, state: str) -> tuple[str, int]:
        text, _, mac = state.removeprefix(PREFIX).rpartition(".")
        good = base64.urlsafe_b64encode(self._mac(text)).decode()
        identifier, _, expires = text.partition(".")
        if not hmac.compare_digest(good.encode(), mac.encode()) or not expires.isdecimal():
            raise CallError(Cause.BAD_TEXT, "requestState is not valid here")
        return identifier, int(expires)

    def _mac(self, text: str) -> bytes:
        said = f"{self._whose}\0{text}".encode(errors="surrogatepass")
        return hmac.digest(_KEY, said, "sha256")


def _digest(message: dict[str, Any]) -> str:
    """What a request asks for, but for what a retry adds."""
    but = ("_meta", "inputResponses", "requestState")
    params = {name: value for name, value in params_of(message).items() if name not in but}
    return hashlib.sha256(jsonrpc.dumps([message["method"], params])).hexdigest()


def _can_be_written(request: dict[str, Any]) -> bool:
    try:
        jsonrpc.dumps([[[[request]]]])  # within a result, deeper by some
    except ValueError:
        return False
    return True


def _lacks(feature: str) -> CallError:
    return CallError(
        Cause.CAPABILITY_REQUIRED,
        f"the server needs the client capability {feature}",
        data={"requiredCapabilities": {feature: {}}},
    )
