"""What an HTTP answer says: messages, or why there are none."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import orjson
from aiohttp import ClientResponse

from autobot_mcp_bridge.upstream.client import JSON, STREAM
from autobot_mcp_bridge.upstream.endings import (
    CONFIG,
    NO_PERMISSION,
    UNAVAILABLE,
    FailedError,
)
from autobot_mcp_bridge.upstream.events import Events, TooLongError
from autobot_mcp_bridge.upstream.settings import Settings

# Bytes of an error's body that are looked at, and characters of its text that are shown.
_ERROR_BYTES, _SHOWN = 1 << 20, 200
_MOST_WAIT = 86400  # seconds; a longer Retry-After, or a date, is told as this or not at all


async def whole(response: ClientResponse, most: int) -> bytes:
    """A body of one message.

    Raises:
        FailedError: it is longer than it may be, or encoded.
    """
    _check_encoding(response)
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > most:
            text = f"the answer has more than {most} bytes"
            raise FailedError(text, http=response.status)
        pieces.append(piece)
    return b"".join(pieces)


async def streamed(response: ClientResponse, events: Events) -> AsyncIterator[bytes]:
    """The messages of a stream, as they come; it ends where the stream ends.

    Raises:
        FailedError: one is longer than it may be, or the stream is encoded.
    """
    _check_encoding(response)
    try:
        async for piece in response.content.iter_any():
            for data in events.feed(piece):
                yield data
    except TooLongError:
        text = f"a message of the upstream has more than {events.most} bytes"
        raise FailedError(text, http=response.status) from None


def kind_of(response: ClientResponse) -> str:
    """The media type in lower case, without parameters; empty: none."""
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


async def refusal(response: ClientResponse, settings: Settings) -> FailedError:
    """Why an answer with a status that is no success was given; reads its body.

    Args:
        response: it.
        settings: of the upstream.
    """
    status, place = response.status, settings.place
    if 300 <= status < 400:
        target = response.headers.get("Location", "")
        parts = urlsplit(target) if target.isprintable() else urlsplit("")
        host = parts.netloc.rpartition("@")[2][:_SHOWN]
        where = f"{parts.scheme}://{host}" if host else "another path of it"
        text = (
            f"{place} redirects to {where}, which is not followed; "
            "if that is right, it belongs into url"
        )
        return FailedError(text, CONFIG, http=status)
    error = await _error_in(response)
    said = settings.redact(str(error.get("message", "")))[:_SHOWN] if error else ""
    text = f"{place} answers {status}" + (f": {said}" if said else "")
    wait = response.headers.get("Retry-After", "").strip()
    seconds = min(int(wait), _MOST_WAIT) if wait.isdigit() and len(wait) < 10 else None
    if seconds is not None:
        text += f" (try again in {seconds} s)"
    ends = NO_PERMISSION if status in (401, 403) else CONFIG if status == 404 else UNAVAILABLE
    return FailedError(text, ends, http=status, retry_after=seconds, error=error)


async def _error_in(response: ClientResponse) -> dict[str, Any] | None:
    """The JSON-RPC error in a body, if there is one."""
    try:
        if kind_of(response) == JSON:
            body = orjson.loads(await whole(response, _ERROR_BYTES))
        elif kind_of(response) == STREAM:
            body = None
            async for data in streamed(response, Events(_ERROR_BYTES)):
                body = orjson.loads(data)
                break
        else:
            return None
    except (FailedError, orjson.JSONDecodeError):
        return None
    error = body.get("error") if isinstance(body, dict) else None
    match error:
        case {"code": int(), "message": str()}:
            return error
    return None


def _check_encoding(response: ClientResponse) -> None:
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    if encoding != "identity":
        text = f"the answer is encoded ({encoding[:_SHOWN]}), which was not asked for"
        raise FailedError(text, http=response.status)
