"""What a modern server wants to know is asked of a handshake client (26 basic/patterns/mrtr).

The server answers a call with `input_required` and what it wants; the client gets a request of the
handshake era for each, and when it has answered them all the call is made again with the answers.
To the client it is one call all the while.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.call import Call
from autobot_mcp_bridge.channels.channel import Channel
from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.sessions.dialects import meta_of
from autobot_mcp_bridge.sessions.session import Session

# Requests whose answer may be a question, and what may be asked.
ASKING = frozenset({"prompts/get", "resources/read", "tools/call"})
QUESTIONS = {  # and the feature that a client declares for it
    "elicitation/create": "elicitation",
    "roots/list": "roots",
    "sampling/createMessage": "sampling",
}
INPUT_REQUIRED = "input_required"
# A person thinks before an answer; in seconds.
PATIENCE = 600.0
# Rounds of one call, and questions of one session that wait for answers.
MAX_ROUNDS = 32
MAX_QUESTIONS = 64
# Requests of a server are kept until their answers come, to be made again: of those above LARGE so
# many bytes together.
LARGE = 64 << 10
MAX_KEPT = 64 << 20
# An elicitation that a client answers with an error (25 client/elicitation, Response Actions).
DISMISSED = {"action": "cancel"}


@dataclass(eq=False, slots=True)
class Round:
    """A call whose server has asked something."""

    channel: Channel
    call: Call
    session: Session
    message: dict[str, Any]
    count: int = 0
    waiting: set[str] = field(default_factory=set)
    answers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """One request to a client: of which round it is, and under which key."""

    round: Round
    key: str
    method: str


class Rounds:
    """The questions of one modern process to the handshake clients of a server."""

    def __init__(self, on_dropped: Callable[[str], None]) -> None:
        self._on_dropped = on_dropped
        self._numbers = itertools.count(1)
        self._large: list[Call] = []  # whose requests are kept

    def watch(
        self, channel: Channel, call: Call, session: Session, message: dict[str, Any]
    ) -> None:
        """Have the answer to this call looked at; `message` is what was sent."""
        if message["method"] not in ASKING:
            return
        if self._has_room(call):
            ours = Round(channel, call, session, message)
            call.intercept = lambda answer: self._take(ours, answer)
        else:
            call.intercept = lambda answer: _without_room(call, answer)

    def _has_room(self, call: Call) -> bool:
        if call.size <= LARGE:
            return True
        self._large = [kept for kept in self._large if not kept.done]
        if sum(kept.size for kept in self._large) + call.size > MAX_KEPT:
            return False
        self._large.append(call)
        return True

    def _take(self, ours: Round, answer: Answer) -> bool:
        try:
            result = input_required(answer)
            if result is None:
                return False
            self._ask(ours, result)
        except ValueError:  # nested so deeply that it can be read and not be written
            ours.call.error = CallError(Cause.BAD_ANSWER, "what it asks cannot be passed on")
            ours.call.ring()
        except CallError as error:
            ours.call.error = error
            ours.call.ring()
        return True

    def _ask(self, ours: Round, result: dict[str, Any]) -> None:
        ours.count += 1
        if ours.count > MAX_ROUNDS:
            raise CallError(Cause.BAD_ANSWER, f"the server asked {MAX_ROUNDS} times")
        wanted = result.get("inputRequests", {})
        lines = [self._line(ours, key, request) for key, request in _questions(wanted)]
        params = {
            name: value
            for name, value in ours.message["params"].items()
            if name not in ("inputResponses", "requestState")
        }
        if "requestState" in result:
            params["requestState"] = result["requestState"]
        ours.message["params"], ours.answers = params, {}
        if not lines:
            self._resume(ours)
            return
        ours.channel.park(ours.call, PATIENCE)
        for line in lines:
            if ours.call.streamable:
                ours.channel.push(ours.call, line)
            else:
                ours.session.outbox.push(line)

    def _line(self, ours: Round, key: str, request: dict[str, Any]) -> bytes:
        feature = QUESTIONS[request["method"]]
        if feature not in ours.session.client.capabilities:
            text = f"the server asks for {feature}, which the client has not declared"
            raise CallError(Cause.BAD_ANSWER, text)
        questions = ours.session.questions
        for identifier, question in list(questions.items()):
            if question.round.call.done:
                del questions[identifier]
        if len(questions) >= MAX_QUESTIONS:
            raise CallError(Cause.QUEUE_FULL, "too many questions wait for the client's answers")
        number = f"bridge-{next(self._numbers)}"
        questions[jsonrpc.dumps(number)] = Question(ours, key, request["method"])
        ours.waiting.add(key)
        return jsonrpc.dumps({"jsonrpc": "2.0", "id": number, **request})

    def respond(self, session: Session, message: dict[str, Any]) -> None:
        """A client's answer; one to nothing is dropped (D3)."""
        question = session.questions.pop(jsonrpc.dumps(message.get("id")), None)
        if question is None or question.round.call.done:
            self._on_dropped("stray_answer")
            return
        ours = question.round
        answer = message.get("result")
        if "error" in message and question.method == "elicitation/create":
            answer = DISMISSED
        if not isinstance(answer, dict):
            ours.channel.cancel(ours.call, f"the client did not answer {question.method}")
            return
        ours.answers[question.key] = answer
        ours.waiting.discard(question.key)
        if not ours.waiting:
            self._resume(ours)

    def _resume(self, ours: Round) -> None:
        params = {**ours.message["params"], "_meta": {**meta_of(ours.message["params"])}}
        if ours.answers:
            params["inputResponses"] = ours.answers
        try:
            ours.channel.again(ours.call, {**ours.message, "params": params})
        except CallError as error:
            ours.call.error = error
            ours.call.ring()


def _without_room(call: Call, answer: Answer) -> bool:
    """Nobody is asked for a call that could not be made again."""
    try:
        if input_required(answer) is None:
            return False
        text = "the server asks, and too many large calls are open to ask for this one"
        call.error = CallError(Cause.QUEUE_FULL, text, retry_after=1)
    except CallError as error:
        call.error = error
    call.ring()
    return True


def input_required(answer: Answer) -> dict[str, Any] | None:
    """The result of an answer that asks for something.

    Raises:
        CallError: it cannot be read.
    """
    if answer.is_error or (answer.message is None and b'"input_required"' not in answer.line):
        return None
    result = answer.parsed().get("result")
    if not isinstance(result, dict) or result.get("resultType") != INPUT_REQUIRED:
        return None
    return result


def _questions(wanted: object) -> list[tuple[str, dict[str, Any]]]:
    if not isinstance(wanted, dict):
        raise CallError(Cause.BAD_ANSWER, "inputRequests of the server's answer is no object")
    found = []
    for key, request in wanted.items():
        method = request.get("method") if isinstance(request, dict) else None
        if not isinstance(method, str) or method not in QUESTIONS:
            raise CallError(Cause.BAD_ANSWER, "the server asks what no client can be asked")
        params = request.get("params")
        found.append((key, {"method": method, "params": params if params is not None else {}}))
    return found
