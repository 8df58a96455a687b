"""Binary blocks above a size are left out of an answer, and a stub says so (SM-53)."""

import logging
import re
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc

log = logging.getLogger(__name__)

_MEDIA_TYPE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9.+-]{0,63}/[a-zA-Z0-9][a-zA-Z0-9.+-]{0,63}")
# Where blocks stand in the results of tools/call, resources/read and prompts/get.
_LISTS = ("content", "contents")


def capped(result: dict[str, Any], most: int, instance: str) -> dict[str, Any]:
    """The result with a text in the place of each binary block that has more than `most` bytes.

    Everything of a block counts, its `_meta` too; the others are kept as they are.
    """
    changed = dict(result)
    for name in _LISTS:
        if isinstance(blocks := result.get(name), list):
            changed[name] = [
                _block(block, most, instance, bare=name == "contents") for block in blocks
            ]
    if isinstance(messages := result.get("messages"), list):
        changed["messages"] = [_message(message, most, instance) for message in messages]
    return changed


def _message(message: Any, most: int, instance: str) -> Any:
    if not isinstance(message, dict) or not isinstance(message.get("content"), dict):
        return message
    return {**message, "content": _block(message["content"], most, instance, bare=False)}


def _block(block: Any, most: int, instance: str, *, bare: bool) -> Any:
    kind = _kind(block)
    if kind is None:
        return block
    size = len(jsonrpc.dumps(block))
    if size <= most:
        return block
    inner = block.get("resource") if kind == "resource" else block
    said = inner.get("mimeType") if isinstance(inner, dict) else None
    media = said if isinstance(said, str) and _MEDIA_TYPE.fullmatch(said) else "unknown type"
    text = f"[{kind} of {media} left out: {size} bytes, allowed are {most}]"
    log.warning("%s: %s", instance, text, extra={"MCP_INSTANCE": instance})
    if bare:
        return {"uri": str(block.get("uri", "")), "mimeType": "text/plain", "text": text}
    return {"type": "text", "text": text}


def _kind(block: Any) -> str | None:
    """What a binary block is; None for any other."""
    if not isinstance(block, dict):
        return None
    if block.get("type") in ("image", "audio"):
        return str(block["type"])
    inner = block.get("resource") if block.get("type") == "resource" else block
    if isinstance(inner, dict) and "blob" in inner:
        return "resource" if inner is not block else "blob"
    return None
