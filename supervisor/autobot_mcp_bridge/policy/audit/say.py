"""The lines on stderr, or as entries of the journal; which, decides who sets up the logging."""

import logging
from typing import Any

import orjson

NAME = "autobot_mcp_bridge.audit"

_log = logging.getLogger(NAME)
_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def say(line: dict[str, Any], written: bytes | None) -> None:
    """Tell one line, as it is `written` if it is; in the journal its words are fields, too."""
    fields = {
        "MCP_INSTANCE": line.get("instance"),
        "MCP_TENANT": line.get("tenant"),
        "MCP_PROJECT": line.get("project"),
        "MCP_EVENT": line["event"],
        "MCP_STATUS": line.get("status"),
        "MCP_TOOL": line.get("tool"),
        "MCP_SESSION": line.get("session_id"),
        "MCP_AUDIT_SEQ": line.get("seq"),
    }
    text = written or orjson.dumps(line, default=lambda _: "[cannot be written]")
    _log.log(_LEVELS[line["level"]], "%s", text.decode().rstrip("\n"), extra=fields)
