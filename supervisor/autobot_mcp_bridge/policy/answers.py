"""What an admitted request's answer becomes on its way out."""

from collections.abc import Callable
from typing import Any

from autobot_mcp_bridge.channels import jsonrpc
from autobot_mcp_bridge.channels.jsonrpc import Answer
from autobot_mcp_bridge.policy.filters.binary import capped
from autobot_mcp_bridge.policy.rules import Rules

Finish = Callable[[Answer], Answer]
# Results that a server makes up at each call; a list is what it is (SM-F1).
MADE = frozenset({"completion/complete", "prompts/get", "resources/read", "tools/call"})
# Lists, and which member of an entry its globs are about.
_LISTS = {
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "tools/list": ("tools", "name"),
}


def finish_of(method: str, rules: Rules, instance: str, what: object) -> Finish | None:
    """How the answer to this method is finished; None: it goes out as it came."""
    if method in _LISTS:
        return lambda answer: _listed(answer, method, rules)
    if method not in MADE and not method.startswith("tasks/"):
        return None
    if rules.responses is None and not rules.most_binary:
        return None
    return lambda answer: _filtered(answer, rules, instance, what)


def joined(first: Finish | None, then: Finish | None) -> Finish | None:
    """One after the other."""
    if first is None or then is None:
        return first or then
    return lambda answer: then(first(answer))


def _listed(answer: Answer, method: str, rules: Rules) -> Answer:
    """Without what may not be called, read or got: listing and calling agree (NV-12)."""
    if answer.is_error:
        return answer
    message = answer.parsed()
    name, key = _LISTS[method]
    entries = message["result"].get(name)
    if not isinstance(entries, list):
        return answer
    kept = [entry for entry in entries if _is_shown(entry, key, method, rules)]
    if len(kept) == len(entries):
        return answer
    return jsonrpc.rebuilt({**message, "result": {**message["result"], name: kept}})


def _is_shown(entry: Any, key: str, method: str, rules: Rules) -> bool:
    if method == "tools/list":
        return rules.shows(entry)
    said = entry.get(key) if isinstance(entry, dict) else None
    globs = rules.prompts if method == "prompts/list" else rules.resources
    return isinstance(said, str) and globs.match(said)


def _filtered(answer: Answer, rules: Rules, instance: str, what: object) -> Answer:
    """Errors are looked through as results are (SM-F4); a large answer only if it may matter."""
    if rules.responses is None and len(answer.line) <= rules.most_binary:
        return answer  # no block of it can be too large
    message = answer.parsed()
    name = "error" if answer.is_error else "result"
    body = before = message[name]
    if rules.most_binary and not answer.is_error and len(answer.line) > rules.most_binary:
        body = capped(body, rules.most_binary, instance)
    if rules.responses is not None:
        body = rules.responses.of(body, what)
    return answer if body == before else jsonrpc.rebuilt({**message, name: body})
