"""What an import says: a line for each entry, with what is left to do; never a secret."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autobot_mcp_bridge.connect.imported.plan import Named, Planned, What

_TO_DO = "it waits for what is to do, below"


def needs_a_person(planned: Sequence[Planned]) -> bool:
    """Whether something of the file is not here as the file wants it."""
    return any(each.asked_for and (each.what is What.SKIPPED or each.to_do) for each in planned)


def name(each: Planned) -> str:
    """What it is called here, or by the client where it is not here."""
    if each.server is None or each.what is What.SKIPPED:
        return each.draft.name
    return each.server.instance


def rows(planned: Sequence[Planned]) -> Iterator[tuple[str, str, str]]:
    """Entry, what becomes of it, and why."""
    for each in planned:
        secrets = sum(named.put for named in each.secrets) if each.what is not What.SKIPPED else 0
        stored = f"{secrets} secret{'s' if secrets > 1 else ''} stored" if secrets else ""
        why = each.why or (_TO_DO if each.what is What.DISABLED and each.to_do else "")
        yield name(each), each.what.value, "; ".join(filter(None, (why, stored))) or "-"


def remarks(each: Planned) -> Iterator[str]:
    """What there is to say of one entry, beside its line."""
    if each.what is What.SKIPPED and not each.to_do:
        return
    yield from (f"to do: {text}" for text in each.to_do)
    yield from each.draft.notes
    grouped: dict[str, list[str]] = {}
    for key, why in each.draft.left_out.items():
        grouped.setdefault(why, []).append(key)
    yield from (f"left out: {', '.join(keys)}: {why}" for why, keys in grouped.items())


def definition(each: Planned) -> str:
    """The definition as it is, or would be, written."""
    return json.dumps({"name": getattr(each.server, "name", ""), **each.settings}, indent=2)


def as_data(each: Planned) -> dict[str, Any]:
    """All of it for programs."""
    return {
        "entry": each.draft.name,
        "where": each.draft.where,
        "server": each.server.instance if each.server else None,
        "what": each.what.value,
        "why": each.why,
        "became": dict(each.draft.became),
        "left_out": dict(each.draft.left_out),
        "to_do": each.to_do,
        "notes": list(each.draft.notes),
        "definition": dict(each.settings) or None,
        "secrets": [_secret(named) for named in each.secrets],
    }


def _secret(named: Named) -> Mapping[str, Any]:
    kind = "header" if named.secret.header else "variable"
    return {
        "name": named.name,
        kind: named.secret.label,
        "stored": named.stored,
        "written": named.put,
    }
