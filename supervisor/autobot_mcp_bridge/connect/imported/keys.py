"""Keys of clients that have an equal here with another name, and those that have none, and why."""

import re
from collections.abc import Mapping
from typing import Any

from autobot_mcp_bridge.connect.imported.draft import Draft

_LOGIN = (
    "the proxy does not log in at an upstream; a token that counts there goes into a header "
    "(headers: {Authorization: {credential: SECRET}})"
)
_CONSENT = "the consent to a tool call is the client's; here `tools` says which tools there are"
_LABEL = "it describes the server for people"
_OWN_SANDBOX = "the sandbox here is made of profile, paths and network"
_HABIT = "it is about the client's own work"
LEFT_OUT: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("description", "title", "icon", "icons", "author", "gallery", "version", "tags"),
            *("metadata", "name", "display_name", "displayName", "$schema", "homepage", "note"),
            *("source", "_comment", "comment", "extensionName", "provider", "instructions"),
        ),
        _LABEL,
    ),
    **dict.fromkeys(
        (
            *("trust", "autoApprove", "alwaysAllow", "always_allow", "auto_approve"),
            *("default_tools_approval_mode", "approval_mode", "requireApproval", "autoAllow"),
        ),
        _CONSENT,
    ),
    **dict.fromkeys(
        (
            *("oauth", "auth", "scopes", "oauth_resource", "authProviderType", "oauthScopes"),
            *("targetAudience", "targetServiceAccount", "headersHelper", "authorization_token"),
            *("client_id", "clientId"),
        ),
        _LOGIN,
    ),
    **dict.fromkeys(("sandbox", "sandboxEnabled", "permissions", "socket"), _OWN_SANDBOX),
    **dict.fromkeys(
        (
            *("required", "supports_parallel_tool_calls", "experimental_environment", "bundled"),
            *("dev", "watch", "chatMenu", "chat_menu", "forceContext", "toolPrefix", "chatmenu"),
            *("useInstructions", "startup", "initTimeout", "requestOptions", "faviconUrl"),
            *("connectionTimeout", "connection_timeout", "sourceFile", "debug"),
        ),
        _HABIT,
    ),
}
UNKNOWN = "no key here is like it"
_MOST_SECONDS = 3600  # more than that is meant as milliseconds: no client's is longer
_LONGEST = 366 * 86400.0  # config/relations.py
_GLOB = re.compile(r"([*?\[])")
# Key: ours, and how many of it are a second; 0: seconds, or milliseconds where they are many.
_TIMEOUTS: Mapping[str, tuple[str, int]] = {
    "startup_timeout_sec": ("start", 1),
    "startup_timeout_ms": ("start", 1000),
    "tool_timeout_sec": ("call", 1),
    "timeout": ("call", 0),
}
_TOOLS: Mapping[str, str] = {
    **dict.fromkeys(("includeTools", "enabled_tools", "enabledTools", "available_tools"), "allow"),
    **dict.fromkeys(("excludeTools", "disabled_tools", "disabledTools"), "deny"),
}


def take_rest(draft: Draft, data: Mapping[str, Any]) -> None:
    """Take the keys that no other part has taken: timeouts, lists of tools, and what is none."""
    for key, value in data.items():
        if key in draft.became or key in draft.left_out:
            continue
        if draft.skipped:
            draft.left_out[key] = "the whole entry is"
            continue
        if key in _TIMEOUTS:
            _take_timeout(draft, key, value)
        elif key in _TOOLS:
            _take_tools(draft, key, value)
        elif key == "tools" and isinstance(value, list):
            _take_tools(draft, key, value, "allow")
        elif key == "tools":
            draft.left_out[key] = _CONSENT
        else:
            draft.left_out[key] = LEFT_OUT.get(key, UNKNOWN)


def _take_timeout(draft: Draft, key: str, value: Any) -> None:
    ours, per_second = _TIMEOUTS[key]
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) < _LONGEST * 1000
    ):
        draft.left_out[key] = "allowed is a number of at most 366 days"
        return
    seconds = value / (per_second or (1000 if value > _MOST_SECONDS else 1))
    if not 0 < seconds <= _LONGEST:
        draft.left_out[key] = "allowed is more than 0 seconds"
        return
    timeouts = draft.settings.setdefault("timeouts", {})
    if ours in timeouts:
        draft.left_out[key] = f"timeouts.{ours} is said by another key"
        return
    timeouts[ours] = int(seconds) if seconds == int(seconds) else seconds
    draft.became[key] = f"timeouts.{ours}"


def _take_tools(draft: Draft, key: str, value: Any, ours: str = "") -> None:
    ours = ours or _TOOLS[key]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        draft.skip(f"{key}: allowed is a list of names of tools")
        return
    if not value:
        draft.left_out[key] = "it is empty"
        return
    draft.settings.setdefault("tools", {})[ours] = [_GLOB.sub(r"[\1]", each) for each in value]
    draft.became[key] = f"tools.{ours}"
