"""JSON-RPC messages as bytes: exact parsing, and answers that change their id without a re-write.

Two rules stand behind this module. What a client sends is parsed once and written anew, so that
no second parser can read it differently from the one that the policy used (duplicate keys). What
a server answers is spliced: only the id is exchanged, every other byte stays as it came, and a
large answer is never parsed at all (PERFORMANCE: parsing 10 MiB held up the neighbours by 25 ms).
"""

import gc
import json
import re
from dataclasses import dataclass
from typing import Any

import orjson

from autobot_mcp_bridge.model.errors import INTERNAL_ERROR, CallError, Cause

# Bytes of a client's id or progress token: each message for it carries it, and each stream keeps it.
MAX_ID = 1024

# Above this an answer is not parsed: its id is found at the line's head or tail.
PARSE_WHOLE = 64 * 1024
# How far from the end of a line its id may stand.
TAIL = 160

# orjson writes no deeper than this (measured: 254 levels pass, 255 do not).
MAX_DEPTH = 254
# The exact parser calls Python for every number; 64 KiB of `1,1,1,…` hold the loop by 8 ms.
EXACT_MAX = 64 * 1024

# orjson turns integers beyond 64 bits into floats; 20 digits are the shortest such number.
# Outside a string one of these three characters stands before every number of a message.
_LONG_NUMBER = re.compile(rb"[:,\[]\s*(?:-\d{19}|\d{20})")
_DIGITS = bytes(48 if 48 <= code < 58 else 32 for code in range(256))
_MANY_DIGITS = b"0" * 19
# What orjson refuses although it is JSON holds one of these: a lone surrogate, 1e400.
_MAYBE_JSON = re.compile(rb"\\u[dD]|\d[eE]\+?\d")
# A text of more arrays and objects is refused unread: 4 MB of `[],` hold the loop for 0.2 s, and
# for 1.4 s with the garbage collector at work (measured).
MOST_CONTAINERS = 100_000
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_START = re.compile(
    rb"\s*\{\s*(?:" + _VERSION + rb",\s*)?"
    rb'(?:"id"\s*:\s*(\d{1,18})\s*,\s*)?'
    rb"(?:" + _VERSION + rb",\s*)?"
    rb'"(result|error)"\s*:\s*\{(\s*\})?'
)
# Sound for valid JSON: the last brace closes the message itself, and a quote that follows a comma
# cannot be inside a string (there it would be escaped).
_END = re.compile(rb',\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*' + _VERSION + rb")?\}\s*\Z")


def loads(data: bytes) -> Any:
    """Parse one JSON text; no integer loses its value, a fraction is what a double can hold.

    What it returns, `dumps` can write: both refuse lone surrogates and nesting beyond MAX_DEPTH.

    Raises:
        ValueError: it is not JSON, not UTF-8, or nobody could pass it on; the message says which.
    """
    message = _loads(data)
    # Openings are an upper bound of the depth, and much cheaper to count.
    if _containers(data) > MAX_DEPTH or _may_hold_surrogates(data):
        dumps(message)
    return message


def read(line: bytes) -> Any:
    """Parse what a server wrote: as `loads`, but what it may say and we cannot is mended.

    JSON.stringify writes half of a cut emoji as a lone surrogate; it is read as U+FFFD.

    Raises:
        ValueError: it is not JSON, not UTF-8, or nests deeper than MAX_DEPTH.
    """
    message = _loads(line)
    if _containers(line) > MAX_DEPTH or _may_hold_surrogates(line):
        try:
            dumps(message)
        except ValueError:
            return _mended(message)
    return message


def _containers(data: bytes) -> int:
    return data.count(b"{") + data.count(b"[")


def _may_hold_surrogates(data: bytes) -> bool:
    return b"\\ud" in data or b"\\uD" in data


def _has_long_number(data: bytes) -> bool:
    # The pattern alone would try each of a million commas.
    return _MANY_DIGITS in data.translate(_DIGITS) and _LONG_NUMBER.search(data) is not None


def _loads(data: bytes) -> Any:
    if len(data) > EXACT_MAX:
        return _loads_large(data)
    if not _has_long_number(data):
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError as error:
            if _MAYBE_JSON.search(data) is None:
                raise ValueError(str(error)) from None
    return _loads_exactly(data)


def _loads_large(data: bytes) -> Any:
    if _containers(data) > MOST_CONTAINERS:
        raise ValueError(f"allowed are at most {MOST_CONTAINERS} arrays and objects")
    if _has_long_number(data):
        raise ValueError(f"numbers of 20 digits are read in texts of up to {EXACT_MAX} bytes only")
    collects = gc.isenabled()
    gc.disable()  # it would look through all that is being made, again and again
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ValueError(str(error)) from None
    finally:
        if collects:
            gc.enable()


def _loads_exactly(data: bytes) -> Any:
    try:
        return json.loads(
            data.decode("utf-8"),
            parse_int=_exact_int,
            parse_float=_exact_float,
            parse_constant=_no_constant,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _mended(value: Any, depth: int = 0) -> Any:
    """The value with every lone surrogate replaced.

    Raises:
        ValueError: it nests deeper than MAX_DEPTH, which is well below Python's own limit.
    """
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_mended(item, depth + 1) for item in value]
        case dict():
            return {_mended(key): _mended(item, depth + 1) for key, item in value.items()}
        case _:
            return value


def dumps(message: object) -> bytes:
    """Write one message on one line.

    Raises:
        ValueError: a string in it is no Unicode text (a lone surrogate), or it nests too deeply.
    """
    try:
        return orjson.dumps(message)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise ValueError(str(error)) from None


def _exact_int(digits: str) -> object:
    value = int(digits) if len(digits) < 4000 else None
    if value is not None and -(1 << 63) <= value < 1 << 64:
        return value
    return orjson.Fragment(digits.encode())


def _exact_float(text: str) -> object:
    value = float(text)
    return value if abs(value) != float("inf") else orjson.Fragment(text.encode())


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


@dataclass(slots=True)
class Answer:
    """A server's answer: its bytes, and where the id and the result's first member stand.

    Attributes:
        number: our private id that it answers.
        message: the parsed message, or None when the line was too large to parse.
        result_at: offset just behind the result's opening brace, or -1.
    """

    line: bytes
    number: int
    is_error: bool
    message: dict[str, Any] | None
    id_start: int
    id_end: int
    result_at: int = -1
    result_empty: bool = False

    def parsed(self) -> dict[str, Any]:
        """The whole message; a large one is parsed here, for who has to look into it.

        Raises:
            CallError: its middle, which nobody had looked at, is no JSON.
        """
        if self.message is None:
            try:
                message = read(self.line)
            except ValueError:
                raise CallError(Cause.BAD_ANSWER, "the answer is no JSON") from None
            if not isinstance(message.get("error" if self.is_error else "result"), dict):
                raise CallError(Cause.BAD_ANSWER, "the answer has two results")
            self.message = message
        return self.message

    def encode(self, client_id: bytes, members: bytes = b"") -> bytes:
        """The answer under the client's own id; `members` (`"k":v,`) go first into its result."""
        line = self.line
        if not members or self.is_error:
            return b"".join((line[: self.id_start], client_id, line[self.id_end :]))
        if self.result_empty:
            members = members[:-1]
        at = self.result_at
        if self.id_end <= at:
            return b"".join(
                (line[: self.id_start], client_id, line[self.id_end : at], members, line[at:])
            )
        return b"".join(
            (line[:at], members, line[at : self.id_start], client_id, line[self.id_end :])
        )


def locate(line: bytes) -> Answer | None:
    """Find out, without parsing, whether a line is an answer in a usual form, and to what."""
    start = _START.match(line)
    if start is None:
        return None
    number = start
    if start[1] is None:
        offset = max(start.end(2), len(line) - TAIL)
        end = _END.search(line, offset)
        if end is None:
            return None
        number = end
    if not line.rstrip().endswith(b"}"):
        return None
    return Answer(
        line=line,
        number=int(number[1]),
        is_error=start[2] == b"error",
        message=None,
        id_start=number.start(1),
        id_end=number.end(1),
        result_at=(start.start(3) if start[3] else start.end()),
        result_empty=start[3] is not None,
    )


def parse(line: bytes) -> Answer | dict[str, Any] | None:
    """Read one line of a server: an answer, another message, or None for what is neither (H2)."""
    if not line.lstrip().startswith(b"{"):
        return None
    if len(line) > PARSE_WHOLE:
        answer = locate(line)
        if answer is not None:
            return answer if _is_utf8(line) else _unreadable(line, "not UTF-8")
    try:
        message = read(line)
    except ValueError as error:
        return _unreadable(line, str(error))
    if not isinstance(message, dict):
        return None
    if "method" in message:
        return message if isinstance(message["method"], str) else None
    try:
        return _small_answer(line, message)
    except CallError:
        return None


def _unreadable(line: bytes, why: str) -> Answer | None:
    """An error in the place of an answer that is none: its caller need not wait for its deadline."""
    answer = locate(line)
    if answer is None:
        return None
    text = f"the server's answer cannot be read: {why}"
    error = {"code": INTERNAL_ERROR, "message": text, "data": {"code": Cause.BAD_ANSWER.word}}
    return rebuilt({"jsonrpc": "2.0", "id": answer.number, "error": error})


def _small_answer(line: bytes, message: dict[str, Any]) -> Answer | None:
    number = message.get("id")
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    is_error = "error" in message
    body = message.get("error") if is_error else message.get("result")
    if not isinstance(body, dict):
        return None
    answer = locate(line)
    if answer is None or answer.number != number or answer.is_error != is_error:
        # An unusual order of members, or a doubled one: what was parsed is what counts.
        return rebuilt({"jsonrpc": "2.0", "id": number, "error" if is_error else "result": body})
    answer.message = message
    return answer


def rebuilt(message: dict[str, Any]) -> Answer:
    """An answer written anew from a message whose id is ours.

    Raises:
        CallError: it cannot be written.
    """
    try:
        answer = locate(dumps(message))
    except ValueError:
        answer = None
    if answer is None:
        raise CallError(Cause.BAD_ANSWER, "the answer cannot be passed on")
    answer.message = message
    return answer


def _is_utf8(line: bytes) -> bool:
    if line.isascii():
        return True
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def error_body(
    code: int, message: str, *, client_id: bytes = b"null", data: object = None
) -> bytes:
    """A JSON-RPC error response; `client_id` is JSON already, so that it keeps its type."""
    error: dict[str, object] = {"code": code, "message": message}
    if data:
        error["data"] = data
    try:
        text = dumps(error)
    except ValueError:  # it quotes a stranger: a header's bytes that are no text, for one
        try:
            text = dumps(_mended(error))
        except ValueError:
            text = dumps({"code": code, "message": "an error that cannot be passed on"})
    return b"".join((b'{"jsonrpc":"2.0","id":', client_id, b',"error":', text, b"}"))


def result_body(client_id: bytes, result: object) -> bytes:
    """A JSON-RPC result response."""
    return b"".join((b'{"jsonrpc":"2.0","id":', client_id, b',"result":', dumps(result), b"}"))
