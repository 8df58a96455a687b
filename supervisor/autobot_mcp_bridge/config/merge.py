"""A file's defaults below each of its servers."""

from collections.abc import Mapping
from typing import Any

from autobot_mcp_bridge.config.problem import Loc


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both together; where they meet, `above` wins, and tables are merged key by key.

    Lists are replaced whole: an allow-list that grows by its defaults would surprise.
    """
    result = dict(below)
    for key, value in above.items():
        under = result.get(key)
        if isinstance(value, dict) and isinstance(under, dict):
            result[key] = merge(under, value)
        else:
            result[key] = value
    return result


def holds(value: object, loc: Loc) -> bool:
    """Tell whether something stands at that place."""
    for part in loc:
        match value:
            case dict() if part in value:
                value = value[part]
            case list() if isinstance(part, int) and part < len(value):
                value = value[part]
            case _:
                return False
    return True
