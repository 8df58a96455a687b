"""Filters over what a server answers, its errors included (SM-20, SM-59, SM-F4)."""

import base64
import logging
from collections.abc import Callable
from typing import Any

from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.policy.filters.decoding import forms, unbase64
from autobot_mcp_bridge.policy.filters.patterns import compiled
from autobot_mcp_bridge.policy.manifest.model import ResponseFilter

log = logging.getLogger(__name__)

REDACTED = "[REDACTED]"
# A text that comes as a blob is looked at up to here; a larger one cannot be, and is blocked.
MAX_BLOB = 4 << 20
# Media types whose blobs are text, beside text/*.
TEXTUAL = ("application/json", "application/xml", "application/yaml", "application/javascript")


class ResponseFilters:
    """The filters of one manifest, for one server."""

    def __init__(self, filters: tuple[ResponseFilter, ...], instance: str) -> None:
        self._filters = [
            (each, compiled(each.pattern, case_insensitive=each.case_insensitive))
            for each in sorted(filters, key=lambda each: each.action != "block")
        ]
        self._strict = any(each.action != "warn" for each in filters)
        self._instance = instance

    def of(self, body: dict[str, Any], what: object) -> dict[str, Any]:
        """The result or error with what matches taken out; the same object where nothing does.

        Raises:
            CallError: a filter blocks, or a text cannot be looked at.
        """
        changed: dict[str, Any] = _mapped(body, lambda text: self._text(text, what), self._blob)
        return changed

    def _text(self, text: str, what: object) -> str:
        for each, pattern in self._filters:
            for number, form in enumerate(forms(text, each.decode)):
                if pattern.search(form) is None:
                    continue
                self._tell(each, what)
                if each.action == "redact":
                    # What a decoded form hides cannot be cut out of the text that hides it.
                    text = REDACTED if number else pattern.sub(REDACTED, text)
                break
        return text

    def _blob(self, block: dict[str, Any]) -> None:
        """A text that comes as base64: nothing can be taken out of it, so a match blocks it."""
        if not _is_textual(block.get("mimeType")):
            return
        text = unbase64(block["blob"], url_safe=False, most=MAX_BLOB)
        if text is None and self._strict:
            said = f"{self._instance}: a text that comes as a blob cannot be decoded"
            log.warning("%s: block", said, extra={"MCP_INSTANCE": self._instance})
            raise _blocked()
        for each, pattern in self._filters if text is not None else ():
            if any(pattern.search(form) is not None for form in forms(text or "", each.decode)):
                self._tell(each, "a blob")
                if each.action == "redact":
                    raise _blocked()

    def _tell(self, each: ResponseFilter, what: object) -> None:
        said = f"{self._instance}: {what}: the answer matches filter {each.name!r}"
        log.warning("%s: %s", said, each.action, extra={"MCP_INSTANCE": self._instance})
        if each.action == "block":
            raise _blocked()


def _blocked() -> CallError:
    return CallError(Cause.RESPONSE_BLOCKED, "the answer is not allowed to leave")


def _is_textual(kind: object) -> bool:
    plain = kind.partition(";")[0].strip().lower() if isinstance(kind, str) else ""
    return plain.startswith("text/") or plain in TEXTUAL or plain.endswith(("+json", "+xml"))


def _mapped(
    value: Any, change: Callable[[str], str], look: Callable[[dict[str, Any]], None]
) -> Any:
    """The value with every string changed; payloads of images, audio and blobs as they are.

    A value nests 254 levels at most (jsonrpc.MAX_DEPTH), well below Python's own limit.
    """
    match value:
        case str():
            return change(value)
        case list():
            return [_mapped(item, change, look) for item in value]
        case dict():
            payload = _payload(value)
            if payload == "blob":
                look(value)
            return {
                change(name): member if name == payload else _mapped(member, change, look)
                for name, member in value.items()
            }
        case _:
            return value


def _payload(block: dict[str, Any]) -> str | None:
    """Which member of a content block is bytes in base64 (MCP schema: ImageContent and so on)."""
    if block.get("type") in ("image", "audio") and isinstance(block.get("data"), str):
        return "data" if _is_base64(block["data"]) else None
    if isinstance(block.get("blob"), str) and isinstance(block.get("uri"), str):
        return "blob"
    return None


def _is_base64(text: str) -> bool:
    """Whether a payload is what it says: plain words under `data` are looked at as any text."""
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True
